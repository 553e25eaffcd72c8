// A bare KCP peer with kcp-go: no cipher, no parity, and kcp-go's default socket buffers.
//
//	peer receive -bytes N    takes one session, reads N bytes, answers with one byte
//	peer send -to ADDRESS    sends -count messages of -size bytes, and waits for that byte
//	peer echo                sends back to each session what comes from it
//
// Each prints a line with what happened and a line with kcp-go's counters, as kcptun does on SIGUSR1.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"time"

	kcp "github.com/xtaci/kcp-go"
)

// The arguments of SetNoDelay, SetWindowSize, SetMtu and SetACKNoDelay.
type knobs struct {
	nodelay, interval, resend, nc, window, mtu int
	ackNoDelay                                 bool
}

func (k *knobs) set(session *kcp.UDPSession) {
	session.SetNoDelay(k.nodelay, k.interval, k.resend, k.nc)
	session.SetWindowSize(k.window, k.window)
	if !session.SetMtu(k.mtu) {
		log.Fatalf("mtu %d", k.mtu)
	}
	session.SetACKNoDelay(k.ackNoDelay)
}

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal("receive, send or echo")
	}
	var k knobs
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	flags.IntVar(&k.nodelay, "nodelay", 1, "0 or 1")
	flags.IntVar(&k.interval, "interval", 10, "the beat, ms")
	flags.IntVar(&k.resend, "resend", 2, "later acknowledgements that make a fast resend")
	flags.IntVar(&k.nc, "nc", 1, "1: no congestion window")
	flags.IntVar(&k.window, "window", 128, "segments, both ways")
	flags.IntVar(&k.mtu, "mtu", 1400, "bytes of a datagram")
	flags.BoolVar(&k.ackNoDelay, "acknodelay", false, "acknowledge at once, not at the beat")
	bytes := flags.Int("bytes", 0, "to receive")
	to := flags.String("to", "", "where to send")
	size := flags.Int("size", 100, "bytes of a message")
	count := flags.Int("count", 700, "messages")
	hz := flags.Int("hz", 0, "messages a second; 0: as fast as it takes them")
	flags.Parse(os.Args[2:])

	switch os.Args[1] {
	case "receive":
		session := accept(listen(), &k)
		receive(session, *bytes)
		// The answer may have to be resent, until somebody ends this program.
		session.Read(make([]byte, 1))
	case "send":
		session, err := kcp.DialWithOptions(*to, nil, 0, 0)
		check(err)
		k.set(session)
		send(session, *size, *count, *hz)
	case "echo":
		listener := listen()
		for {
			go echo(accept(listener, &k))
		}
	default:
		log.Fatal("receive, send or echo, not ", os.Args[1])
	}
}

func listen() *kcp.Listener {
	listener, err := kcp.ListenWithOptions("127.0.0.1:0", nil, 0, 0)
	check(err)
	fmt.Printf("listening on %d\n", listener.Addr().(*net.UDPAddr).Port)
	return listener
}

func accept(listener *kcp.Listener, k *knobs) *kcp.UDPSession {
	session, err := listener.AcceptKCP()
	check(err)
	k.set(session)
	return session
}

func receive(session *kcp.UDPSession, bytes int) {
	var start time.Time
	buf := make([]byte, 1<<16)
	for got := 0; got < bytes; {
		n, err := session.Read(buf)
		check(err)
		if got == 0 {
			start = time.Now()
		}
		got += n
	}
	fmt.Printf("received all in %.6f s\n", time.Since(start).Seconds())
	counted()
	_, err := session.Write([]byte{1})
	check(err)
}

func send(session *kcp.UDPSession, size, count, hz int) {
	message := make([]byte, size)
	start := time.Now()
	for sent := 0; sent < count; sent++ {
		if hz > 0 {
			time.Sleep(time.Until(start.Add(time.Duration(sent) * time.Second / time.Duration(hz))))
		}
		_, err := session.Write(message)
		check(err)
	}
	_, err := session.Read(make([]byte, 1))
	check(err)
	fmt.Println("sent all")
	counted()
}

func echo(session *kcp.UDPSession) {
	buf := make([]byte, 1<<17)
	for {
		n, err := session.Read(buf)
		if err != nil {
			return
		}
		if _, err := session.Write(buf[:n]); err != nil {
			return
		}
	}
}

func counted() {
	fmt.Printf("KCP SNMP:%+v\n", kcp.DefaultSnmp.Copy())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
