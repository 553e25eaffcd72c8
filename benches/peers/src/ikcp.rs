//! ikcp.c 1.7.1 as a [`Peer`].

use crate::pipe::{CONV, Peer, Port};
// The crate links the C code, but its declarations are private.
use kcp_sys as _;
use std::ffi::{c_char, c_int, c_long, c_void};
use std::slice;

pub(crate) struct Ikcp {
    kcp: *mut ControlBlock,
    /// The target of the C side's `user` pointer, boxed so that it does not move.
    _port: Box<Port>,
}

impl Peer for Ikcp {
    const NAME: &'static str = "ikcp.c";

    fn new(window: u16, port: Port) -> Self {
        let port = Box::new(port);
        let user = (&raw const *port).cast_mut().cast();
        let window = window.into();
        // SAFETY: `user` outlives the control block, see `Drop`; `output` casts it back to its type.
        unsafe {
            let kcp = ikcp_create(CONV, user);
            assert!(!kcp.is_null(), "out of memory");
            ikcp_setoutput(kcp, output);
            assert_eq!(ikcp_wndsize(kcp, window, window), 0);
            assert_eq!(ikcp_nodelay(kcp, 1, 10, 2, 1), 0);
            Self { kcp, _port: port }
        }
    }

    fn send(&mut self, message: &[u8]) {
        // SAFETY: the message is readable for its length and copied.
        let sent = unsafe { ikcp_send(self.kcp, message.as_ptr().cast(), len_of(message)) };
        assert!(sent >= 0, "send: {sent}");
    }

    fn recv(&mut self, buf: &mut [u8]) -> Option<usize> {
        // SAFETY: the buffer is writable for its length.
        let received = unsafe { ikcp_recv(self.kcp, buf.as_mut_ptr().cast(), len_of(buf)) };
        assert!(received >= -1, "recv: {received}");
        usize::try_from(received).ok()
    }

    fn input(&mut self, _now: u32, datagram: &[u8]) {
        // SAFETY: the datagram is readable for its length and copied.
        let taken = unsafe { ikcp_input(self.kcp, datagram.as_ptr().cast(), len_of(datagram).into()) };
        assert_eq!(taken, 0, "input");
    }

    fn update(&mut self, now: u32) {
        // SAFETY: the control block is alive, and `output` does not call back into it.
        unsafe { ikcp_update(self.kcp, now) };
    }

    fn wait_snd(&self) -> usize {
        // SAFETY: the control block is alive.
        usize::try_from(unsafe { ikcp_waitsnd(self.kcp) }).unwrap_or(0)
    }
}

impl Drop for Ikcp {
    fn drop(&mut self) {
        // SAFETY: nothing uses the control block after this.
        unsafe { ikcp_release(self.kcp) };
    }
}

/// Makes the C code allocate with `malloc` and `free`. No control block may be alive.
pub(crate) fn set_allocator(
    malloc: unsafe extern "C" fn(usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
) {
    // SAFETY: the functions belong together, and nothing allocated by another pair is left to free.
    unsafe { ikcp_allocator(malloc, free) };
}

unsafe extern "C" fn output(
    datagram: *const c_char,
    len: c_int,
    _kcp: *mut ControlBlock,
    user: *mut c_void,
) -> c_int {
    // SAFETY: `user` is the port given to `ikcp_create`, the datagram is readable for its length.
    let (port, datagram) = unsafe {
        let len = usize::try_from(len).unwrap_or(0);
        (&*user.cast::<Port>(), slice::from_raw_parts(datagram.cast(), len))
    };
    port.carry(datagram);
    len
}

fn len_of(bytes: &[u8]) -> c_int {
    c_int::try_from(bytes.len()).expect("a message is short")
}

/// The opaque `ikcpcb`.
#[repr(C)]
struct ControlBlock {
    _private: [u8; 0],
}

type OutputFn = unsafe extern "C" fn(*const c_char, c_int, *mut ControlBlock, *mut c_void) -> c_int;

// Source: ikcp.h 1.7.1.
unsafe extern "C" {
    fn ikcp_create(conv: u32, user: *mut c_void) -> *mut ControlBlock;
    fn ikcp_release(kcp: *mut ControlBlock);
    fn ikcp_setoutput(kcp: *mut ControlBlock, output: OutputFn);
    fn ikcp_wndsize(kcp: *mut ControlBlock, sndwnd: c_int, rcvwnd: c_int) -> c_int;
    fn ikcp_nodelay(
        kcp: *mut ControlBlock,
        nodelay: c_int,
        interval: c_int,
        resend: c_int,
        nc: c_int,
    ) -> c_int;
    fn ikcp_send(kcp: *mut ControlBlock, buffer: *const c_char, len: c_int) -> c_int;
    fn ikcp_recv(kcp: *mut ControlBlock, buffer: *mut c_char, len: c_int) -> c_int;
    fn ikcp_input(kcp: *mut ControlBlock, data: *const c_char, size: c_long) -> c_int;
    fn ikcp_update(kcp: *mut ControlBlock, current: u32);
    fn ikcp_waitsnd(kcp: *const ControlBlock) -> c_int;
    fn ikcp_allocator(
        new_malloc: unsafe extern "C" fn(usize) -> *mut c_void,
        new_free: unsafe extern "C" fn(*mut c_void),
    );
}
