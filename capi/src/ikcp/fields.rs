//! The fields of a control block that a program sets without a function.

use super::block::IKCPCB;

/// The knobs, as the program has left them.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) struct Knobs {
    pub(super) mtu: u32,
    pub(super) mss: u32,
    pub(super) nodelay: u32,
    pub(super) interval: u32,
    pub(super) snd_wnd: u32,
    pub(super) rcv_wnd: u32,
    pub(super) rx_minrto: i32,
    pub(super) dead_link: u32,
    pub(super) fastresend: i32,
    pub(super) fastlimit: i32,
    pub(super) nocwnd: i32,
    pub(super) stream: i32,
}

impl Knobs {
    /// What ikcp.c takes and we cannot is put right in the block, so that it says what is in force.
    pub(super) fn of(block: &mut IKCPCB) -> Self {
        block.snd_wnd = block.snd_wnd.max(1);
        block.rcv_wnd = block.rcv_wnd.clamp(128, u16::MAX.into());
        Self {
            mtu: block.mtu,
            mss: block.mss,
            nodelay: block.nodelay,
            interval: block.interval,
            snd_wnd: block.snd_wnd,
            rcv_wnd: block.rcv_wnd,
            rx_minrto: block.rx_minrto,
            dead_link: block.dead_link,
            fastresend: block.fastresend,
            fastlimit: block.fastlimit,
            nocwnd: block.nocwnd,
            stream: block.stream,
        }
    }
}

/// What changes by itself and a program may write all the same.
#[derive(Clone, Copy, Default)]
pub(super) struct State {
    pub(super) conv: u32,
    pub(super) rmt_wnd: u32,
    pub(super) rx_srtt: i32,
    pub(super) rx_rttval: i32,
    pub(super) rx_rto: i32,
    pub(super) xmit: u32,
    /// These three are the congestion control's, and left to one of the program.
    pub(super) cwnd: u32,
    pub(super) ssthresh: u32,
    pub(super) incr: u32,
}

impl State {
    pub(super) const fn of(block: &IKCPCB) -> Self {
        let IKCPCB { conv, rmt_wnd, rx_srtt, rx_rttval, rx_rto, xmit, cwnd, ssthresh, incr, .. } = *block;
        Self { conv, rmt_wnd, rx_srtt, rx_rttval, rx_rto, xmit, cwnd, ssthresh, incr }
    }

    /// By name. A time below zero is none yet.
    fn named(&self) -> [(&'static str, u32); 9] {
        let millis = |time: i32| time.max(0).unsigned_abs();
        [
            ("conv", self.conv),
            ("rmt_wnd", self.rmt_wnd),
            ("rx_srtt", millis(self.rx_srtt)),
            ("rx_rttval", millis(self.rx_rttval)),
            ("rx_rto", millis(self.rx_rto)),
            ("xmit", self.xmit),
            ("cwnd", self.cwnd),
            ("ssthresh", self.ssthresh),
            ("incr", self.incr),
        ]
    }

    /// What the program has written since it was told `self`.
    pub(super) fn written(&self, now: &Self) -> impl Iterator<Item = (&'static str, u32)> {
        self.named().into_iter().zip(now.named()).filter(|(told, now)| told != now).map(|(_, now)| now)
    }

    /// Puts this in the block, after `told`. What a callback has written meanwhile stays, and is taken with the next call.
    pub(super) fn tell(&self, told: &mut Self, block: &mut IKCPCB) {
        fn put<T: Copy + PartialEq>(field: &mut T, told: &mut T, value: T) {
            if *field == *told {
                *field = value;
            }
            *told = value;
        }
        put(&mut block.conv, &mut told.conv, self.conv);
        put(&mut block.rmt_wnd, &mut told.rmt_wnd, self.rmt_wnd);
        put(&mut block.rx_srtt, &mut told.rx_srtt, self.rx_srtt);
        put(&mut block.rx_rttval, &mut told.rx_rttval, self.rx_rttval);
        put(&mut block.rx_rto, &mut told.rx_rto, self.rx_rto);
        put(&mut block.xmit, &mut told.xmit, self.xmit);
        if block.ccops.is_null() {
            put(&mut block.cwnd, &mut told.cwnd, self.cwnd);
            put(&mut block.ssthresh, &mut told.ssthresh, self.ssthresh);
            put(&mut block.incr, &mut told.incr, self.incr);
        }
    }
}
