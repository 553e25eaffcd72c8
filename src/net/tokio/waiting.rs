//! The tasks that wait for something of one session.

use super::core::Closed;
use crate::session::Event;
use std::collections::VecDeque;
use std::task::Waker;

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum For {
    /// A message on a channel.
    Recv(u8),
    /// Room on a channel.
    Send(u8),
    /// The arrival of everything sent on a channel.
    Delivered,
    Datagram,
    Event,
    Closed,
}

/// One session as its users see it.
pub(super) struct Waiting<T> {
    /// Number of handles. Without any, the session is released.
    pub(super) handles: usize,
    pub(super) closed: Option<Closed<T>>,
    /// Whether it came up after this was made. A session that was accepted was up before.
    pub(super) is_up: bool,
    /// Ordered by channel, and within a channel by turns.
    tasks: Vec<Task>,
    /// Tasks that were woken for room. Those that have not sent anything since keep their turn.
    woken: Vec<Task>,
    /// Turns that were given.
    turns: u64,
    pub(super) events: VecDeque<Event>,
}

struct Task {
    what: For,
    waker: Waker,
    turn: Turn,
    /// Messages that it has sent since it was woken.
    sent: u64,
}

/// The lowest comes first: the task that has sent the fewest messages, and of several the one that has waited longest. If only the
/// time counted, and room came in parts of few and many messages by turns, the same tasks would always get the many.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
struct Turn {
    messages: u64,
    number: u64,
}

impl Task {
    const fn is_sender(&self) -> bool {
        matches!(self.what, For::Send(_))
    }

    fn is(&self, what: For, waker: &Waker) -> bool {
        self.what == what && self.waker.will_wake(waker)
    }
}

impl<T> Waiting<T> {
    pub(super) const fn new() -> Self {
        Self {
            handles: 0,
            closed: None,
            is_up: false,
            tasks: Vec::new(),
            woken: Vec::new(),
            turns: 0,
            events: VecDeque::new(),
        }
    }

    /// Registers a task to be woken for `what`. A task is only registered once. One that was woken in vain
    /// keeps its turn.
    pub(super) fn wait(&mut self, what: For, waker: &Waker) {
        if self.tasks.iter().any(|task| task.is(what, waker)) {
            return;
        }
        let turn = match self.come(what, waker) {
            Some(Task { turn, sent: 0, .. }) => turn,
            Some(Task { turn, sent, .. }) => self.turn(turn.messages + sent),
            // A newcomer is the last, however little it has sent: it could come anew for each message.
            None => {
                let there = self.tasks.iter().chain(&self.woken).filter(|task| task.what == what);
                self.turn(there.map(|task| task.turn.messages + task.sent).max().unwrap_or(0))
            }
        };
        let at = self.tasks.partition_point(|task| (task.what, task.turn) < (what, turn));
        self.tasks.insert(at, Task { what, waker: waker.clone(), turn, sent: 0 });
    }

    const fn turn(&mut self, messages: u64) -> Turn {
        self.turns += 1;
        Turn { messages, number: self.turns }
    }

    /// A task has sent something on a channel. If it was woken for that and this is the first, the next one runs as well:
    /// there may be room for both.
    pub(super) fn sent(&mut self, channel: u8, waker: &Waker) -> Option<Waker> {
        let what = For::Send(channel);
        let task = self.woken.iter_mut().find(|task| task.is(what, waker))?;
        task.sent += 1;
        if task.sent > 1 {
            return None;
        }
        let next = self.tasks.remove(self.tasks.iter().position(|task| task.what == what)?);
        let waker = next.waker.clone();
        self.woken.push(next);
        Some(waker)
    }

    /// Removes a task that was woken for room and waits again.
    fn come(&mut self, what: For, waker: &Waker) -> Option<Task> {
        let at = self.woken.iter().position(|task| task.is(what, waker))?;
        Some(self.woken.swap_remove(at))
    }

    /// Moves the tasks that wait for something `is_due` to `woken`.
    pub(super) fn wake(&mut self, woken: &mut Vec<Waker>, mut is_due: impl FnMut(For) -> bool) {
        let due = self.tasks.extract_if(.., |task| is_due(task.what));
        woken.extend(due.map(|task| task.waker));
    }

    /// The same for tasks that wait for room: for each channel only the one whose turn it is, the most
    /// urgent channel first. If all were woken, the runtime would decide who runs first, and it would always be
    /// the same one. Returns whether others wait behind them, which must be [woken](Self::wake_rest) if these
    /// do not run.
    pub(super) fn wake_senders(&mut self, woken: &mut Vec<Waker>) -> bool {
        self.woken.clear();
        let mut last = None;
        let is_first = |task: &mut Task| task.is_sender() && last.replace(task.what) != Some(task.what);
        self.woken.extend(self.tasks.extract_if(.., is_first));
        woken.extend(self.woken.iter().map(|task| task.waker.clone()));
        self.tasks.iter().any(Task::is_sender)
    }

    /// Wakes tasks that wait for room behind one that was woken and has not run: it may have been cancelled.
    pub(super) fn wake_rest(&mut self, woken: &mut Vec<Waker>) {
        let Self { tasks, woken: before, .. } = self;
        let is_behind =
            |task: &mut Task| before.iter().any(|before| before.what == task.what && before.sent == 0);
        let mut behind: Vec<_> = tasks.extract_if(.., is_behind).collect();
        woken.extend(behind.iter().map(|task| task.waker.clone()));
        before.append(&mut behind);
    }

    /// Keeps an event. Of many unread ones, only the newest are kept.
    pub(super) fn tell(&mut self, event: Event) {
        if self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}

const EVENTS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::task::Wake;

    struct Nothing;

    impl Wake for Nothing {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn the_most_urgent_channel_goes_first_and_in_each_channel_the_longest_waiting_task() {
        let tasks = [(); 6].map(|()| Waker::from(Arc::new(Nothing)));
        let is = |waker: &Waker, task: usize| waker.will_wake(&tasks[task]);
        let mut waiting = Waiting::<()>::new();
        for (task, waker) in tasks.iter().enumerate() {
            waiting.wait(For::Send(if task < 3 { 1 } else { 0 }), waker);
        }
        for turn in 0..4 {
            let mut woken = Vec::new();
            assert!(waiting.wake_senders(&mut woken));
            assert!(woken.len() == 2 && is(&woken[0], 3 + turn % 3) && is(&woken[1], turn % 3));
            for (channel, first) in [(0, 3), (1, 0)] {
                // It sends, and waits again, behind the next, who finds no room and keeps its turn.
                let [task, next] = [turn, turn + 1].map(|turn| first + turn % 3);
                assert!(is(&waiting.sent(channel, &tasks[task]).unwrap(), next));
                assert!(waiting.sent(channel, &tasks[task]).is_none(), "only once per turn");
                waiting.wait(For::Send(channel), &tasks[task]);
                waiting.wait(For::Send(channel), &tasks[next]);
            }
        }
    }

    /// Room comes in parts of one message and of a hundred, by turns.
    #[test]
    fn each_task_sends_as_much_however_the_room_comes_and_a_newcomer_is_the_last() {
        let tasks = [(); 5].map(|()| Waker::from(Arc::new(Nothing)));
        let mut waiting = Waiting::<()>::new();
        let (mut sent, mut runs) = ([0; 4], Vec::new());
        tasks.iter().take(4).for_each(|task| waiting.wait(For::Send(0), task));
        for room in [1, 100].into_iter().cycle().take(400) {
            waiting.wake_senders(&mut runs);
            let mut left = room;
            while let Some(waker) = runs.pop() {
                let task = tasks.iter().position(|task| task.will_wake(&waker)).unwrap();
                for _ in 0..std::mem::take(&mut left) {
                    sent[task] += 1;
                    runs.extend(waiting.sent(0, &waker));
                }
                waiting.wait(For::Send(0), &waker);
            }
        }
        assert!(sent.iter().all(|sent| (4900..=5200).contains(sent)), "{sent:?}");
        waiting.wait(For::Send(0), &tasks[4]);
        assert!(waiting.tasks.last().unwrap().waker.will_wake(&tasks[4]));
    }

    #[test]
    fn tasks_behind_one_that_does_not_run_are_woken() {
        let tasks = [(); 5].map(|()| Waker::from(Arc::new(Nothing)));
        let are = |woken: &[Waker], expected: &[usize]| {
            woken.len() == expected.len()
                && woken.iter().zip(expected).all(|(waker, task)| waker.will_wake(&tasks[*task]))
        };
        let mut waiting = Waiting::<()>::new();
        for (channel, task) in [(0, 0), (0, 1), (0, 2), (1, 3), (1, 4)] {
            waiting.wait(For::Send(channel), &tasks[task]);
        }
        let [mut first, mut rest, mut none, mut again] = [const { Vec::new() }; 4];
        assert!(waiting.wake_senders(&mut first) && are(&first, &[0, 3]));
        waiting.wait(For::Send(1), &tasks[3]); // it has run and found no room
        waiting.wake_rest(&mut rest);
        assert!(are(&rest, &[1, 2]));
        waiting.wake_rest(&mut none);
        assert!(none.is_empty());
        assert!(waiting.wake_senders(&mut again) && are(&again, &[3]));
    }
}
