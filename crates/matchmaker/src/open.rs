//! How many connections of each address are open.

use crate::rate::network;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The numbers of all addresses that have connections. There are no more of them than connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Open(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// A connection in the number of its address. Dropping it takes it out.
#[derive(Debug)]
pub(crate) struct Counted {
    open: Open,
    network: IpAddr,
}

impl Open {
    /// Counts one more connection of an address, unless it has `most`.
    pub(crate) fn count(&self, address: IpAddr, most: usize) -> Option<Counted> {
        let network = network(address);
        let mut numbers = self.lock();
        let number = numbers.get(&network).copied().unwrap_or_default();
        if number >= most {
            return None;
        }
        numbers.insert(network, number + 1);
        Some(Counted { open: self.clone(), network })
    }

    /// Each call leaves it valid.
    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut numbers = self.open.lock();
        match numbers.get_mut(&self.network) {
            Some(number) if *number > 1 => *number -= 1,
            _ => _ = numbers.remove(&self.network),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_so_many_and_nothing_is_kept_of_those_that_are_gone() {
        let open = Open::default();
        let (one, other) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let mut counted: Vec<_> = (0..5).filter_map(|_| open.count(one, 3)).collect();
        assert_eq!(counted.len(), 3);
        assert!(open.count(other, 3).is_some());
        counted.pop();
        assert!(open.count(one, 3).is_some());
        counted.clear();
        assert!(open.lock().is_empty());
    }
}
