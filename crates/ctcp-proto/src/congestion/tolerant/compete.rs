//! What Cubic does (RFC 9438), for the time that somebody else fills the queue or that delay says nothing, with an experiment
//! now and then whether there is room.
//!
//! ```text
//!   Wait n intervals -> Sending 1.25 windows -> Measuring: did the rate follow?  yes: take it, and try again at once
//!        ^                                                   no: wait twice as long
//!        +-------------------------------------- loss
//! ```

use core::time::Duration;

use ctcp_base::Instant;

use super::interval::Interval;

/// RFC 9438 4.1 and 4.6.
const C: f64 = 0.4;
const BETA: f64 = 0.7;

/// The experiment.
const UP: f64 = 1.25;
const FOLLOWS: f64 = 0.6;
const WAIT_MIN: u32 = 3;
const WAIT_MAX: u32 = 48;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Probe {
    Wait(u32),
    Sending,
    /// Its packets are acknowledged in this interval.
    Measuring,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Compete {
    begun: Instant,
    until: Instant,
    /// The window before the last reduction, and when that was.
    most: f64,
    epoch: Instant,
    /// Packets of a window that grows as Reno's does.
    reno: f64,
    probe: Probe,
    wait: u32,
    followed: u32,
    /// Delivery rate of the interval before the experiment.
    rate: f64,
    /// Rate and window before the last back-off, and intervals until its effect is seen.
    backed_off: Option<(f64, f64, u32)>,
}

/// What an interval showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Finding {
    Nothing,
    /// The rate followed the window: there is room, or many share the queue.
    Room(f64),
    /// The same twice in a row.
    MuchRoom(f64),
    /// The rate did not follow a window that changed: we are what fills the path.
    Ours,
}

impl Compete {
    pub(super) fn new(now: Instant, window: f64, time: Duration) -> Self {
        Self {
            begun: now,
            until: now + time,
            most: window,
            epoch: now,
            reno: window,
            probe: Probe::Wait(1),
            wait: WAIT_MIN,
            followed: 0,
            rate: 0.0,
            backed_off: None,
        }
    }

    pub(super) fn until(&self) -> Instant {
        self.until
    }

    pub(super) fn earliest(&self) -> Instant {
        self.begun + (self.until - self.begun) / 2
    }

    /// What the window is multiplied with now.
    pub(super) fn factor(&self) -> f64 {
        if self.probe == Probe::Sending { UP } else { 1.0 }
    }

    pub(super) fn on_interval(&mut self, interval: &Interval, window: f64) -> Finding {
        let rate = interval.rate();
        if let Some((before, tokens, left)) = &mut self.backed_off {
            if *left > 0 {
                *left -= 1;
                return Finding::Nothing;
            }
            let fell = (1.0 - rate / *before) / (1.0 - window / *tokens).max(0.05);
            self.backed_off = None;
            self.rate = rate;
            return if fell < 0.5 { Finding::Ours } else { Finding::Nothing };
        }
        match self.probe {
            Probe::Wait(0) => {
                (self.probe, self.rate) = (Probe::Sending, rate);
            }
            Probe::Wait(left) => self.probe = Probe::Wait(left - 1),
            Probe::Sending => self.probe = Probe::Measuring,
            Probe::Measuring => {
                let follows = (rate / self.rate.max(1e-6) - 1.0) / (UP - 1.0) >= FOLLOWS;
                if !follows {
                    self.wait = (self.wait * 2).min(WAIT_MAX);
                    (self.probe, self.followed) = (Probe::Wait(self.wait), 0);
                    return Finding::Ours;
                }
                self.followed += 1;
                (self.probe, self.wait) = (Probe::Wait(1), WAIT_MIN);
                let window = window * UP;
                (self.most, self.reno) = (self.most.max(window), window);
                return if self.followed > 1 { Finding::MuchRoom(window) } else { Finding::Room(window) };
            }
        }
        Finding::Nothing
    }

    /// More was lost than the path loses by itself. Returns the new window; `rate`: of the last interval.
    pub(super) fn on_congestion(&mut self, now: Instant, window: f64, rate: f64) -> f64 {
        // Fast convergence (RFC 9438 4.7).
        self.most = if window < self.most { window * (1.0 + BETA) / 2.0 } else { window };
        self.epoch = now;
        self.reno = window * BETA;
        self.backed_off = Some((rate, window, 1));
        self.wait = (self.wait * 2).min(WAIT_MAX);
        (self.probe, self.followed) = (Probe::Wait(self.wait), 0);
        window * BETA
    }

    pub(super) fn on_ack(&mut self, now: Instant, window: f64, rtt: Duration) -> f64 {
        let base = self.most * BETA;
        let period = cube_root((self.most - base).max(0.0) / C);
        let time = ((now - self.epoch) + rtt).as_secs_f64() - period;
        let cubic = C * time * time * time + self.most;
        let alpha = if self.reno < self.most { 3.0 * (1.0 - BETA) / (1.0 + BETA) } else { 1.0 };
        self.reno += alpha / window.max(1.0);
        if cubic < self.reno {
            return window.max(self.reno);
        }
        let wanted = cubic.clamp(window, 1.5 * window);
        window + (wanted - window) / window.max(1.0)
    }
}

/// By Newton's method: the core does without the functions of libm.
fn cube_root(value: f64) -> f64 {
    let mut root = if value > 1.0 { value / 2.0 } else { 1.0 };
    for _ in 0..40 {
        root = (2.0 * root + value / (root * root).max(1e-12)) / 3.0;
    }
    root
}
