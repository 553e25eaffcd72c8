//! The fields of a control block that a program sets without a function.

use super::block::IKCPCB;

macro_rules! fields {
    ($(#[$on:meta])* $name:ident { $($field:ident: $type:ty,)* }) => {
        $(#[$on])*
        pub(super) struct $name { $(pub(super) $field: $type,)* }

        impl $name {
            pub(super) const fn of(block: &IKCPCB) -> Self {
                Self { $($field: block.$field,)* }
            }
        }
    };
}

fields! {
    /// The settings, as the program left them.
    #[derive(Clone, Copy, Eq, PartialEq)]
    Knobs {
        mtu: u32,
        mss: u32,
        nodelay: u32,
        interval: u32,
        snd_wnd: u32,
        rcv_wnd: u32,
        rx_minrto: i32,
        dead_link: u32,
        fastresend: i32,
        fastlimit: i32,
        nocwnd: i32,
        stream: i32,
    }
}

impl Knobs {
    /// Replaces values in the block that ikcp.c accepts and we cannot, so that it shows what is in force.
    pub(super) fn put_right(block: &mut IKCPCB) -> Self {
        block.snd_wnd = block.snd_wnd.max(1);
        block.rcv_wnd = block.rcv_wnd.clamp(128, u16::MAX.into());
        Self::of(block)
    }
}

fields! {
    /// State that changes by itself, but that a program may write. The last three belong to the congestion control, and
    /// are left alone if it is the program's.
    #[derive(Clone, Copy, Default)]
    State {
        conv: u32,
        rmt_wnd: u32,
        rx_srtt: i32,
        rx_rttval: i32,
        rx_rto: i32,
        xmit: u32,
        cwnd: u32,
        ssthresh: u32,
        incr: u32,
    }
}

impl State {
    /// By name. A negative time means that there is none yet.
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

    /// What the program has written since the state was `self`.
    pub(super) fn written(&self, now: &Self) -> impl Iterator<Item = (&'static str, u32)> {
        self.named().into_iter().zip(now.named()).filter(|(told, now)| told != now).map(|(_, now)| now)
    }

    /// Writes this state into the block, which had `told` before. What a callback wrote in the meantime stays, and is
    /// taken with the next call.
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
