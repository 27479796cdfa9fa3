//! Routing: the route with the fewest links, and of equal routes the one whose link was added first.
//!
//! Invariant: along the route to a host, each router is one link nearer to it than the one before. Datagrams therefore
//! cannot loop, and no hop limit is needed.

use std::collections::VecDeque;

use crate::link::{Direction, DuplexLink, LinkId};
use crate::node::{NodeId, Port};

/// Returns for every node the port through which `target` is reached, or `None` at the target itself and without a
/// route. Datagrams pass only through nodes for which `forwards` is true.
pub(crate) fn towards(
    target: NodeId,
    neighbours: &Neighbours,
    forwards: impl Fn(NodeId) -> bool,
) -> Vec<Option<Port>> {
    let mut ports = vec![None; neighbours.0.len()];
    let mut reached = VecDeque::from([target]);
    while let Some(node) = reached.pop_front() {
        if node != target && !forwards(node) {
            continue;
        }
        for &(neighbour, port) in &neighbours.0[node.0] {
            if neighbour != target && ports[neighbour.0].is_none() {
                ports[neighbour.0] = Some(port);
                reached.push_back(neighbour);
            }
        }
    }
    ports
}

/// For every node its neighbours, each with the port through which the neighbour reaches the node.
#[derive(Debug)]
pub(crate) struct Neighbours(Vec<Vec<(NodeId, Port)>>);

impl Neighbours {
    /// Creates the neighbours of `nodes` nodes, given their links and their wires.
    pub(crate) fn new(nodes: usize, links: &[DuplexLink], wires: &[(NodeId, NodeId)]) -> Self {
        let mut neighbours = vec![Vec::new(); nodes];
        for (index, link) in links.iter().enumerate() {
            for direction in [Direction::Forward, Direction::Backward] {
                let port = Port::Link(LinkId(index), direction);
                neighbours[link.receiver(direction).0].push((link.sender(direction), port));
            }
        }
        for &(one, other) in wires {
            neighbours[one.0].push((other, Port::Wire(one)));
            neighbours[other.0].push((one, Port::Wire(other)));
        }
        Self(neighbours)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctcp_base::Prng;
    use ctcp_netem::PathConfig;

    fn joined(nodes: usize, ends: &[(usize, usize)]) -> (Vec<DuplexLink>, Neighbours) {
        let link = |&(one, other): &(usize, usize)| {
            DuplexLink::new("", [NodeId(one), NodeId(other)], &PathConfig::default(), &Prng::new(1))
        };
        let links: Vec<DuplexLink> = ends.iter().map(link).collect();
        let neighbours = Neighbours::new(nodes, &links, &[]);
        (links, neighbours)
    }

    #[test]
    fn the_shortest_route_is_taken_and_of_equal_routes_the_first() {
        // 0 - 1 - 2 - 3 and 0 - 4 - 3 and 0 - 5 - 3.
        let (_, neighbours) = joined(6, &[(0, 1), (1, 2), (2, 3), (0, 4), (4, 3), (0, 5), (5, 3)]);
        let ports = towards(NodeId(3), &neighbours, |_| true);
        assert_eq!(ports[0], Some(Port::Link(LinkId(3), Direction::Forward)));
        assert_eq!(ports[1], Some(Port::Link(LinkId(1), Direction::Forward)));
        assert_eq!(ports[3], None);
    }

    #[test]
    fn no_route_leads_through_a_node_that_does_not_forward() {
        let (_, neighbours) = joined(3, &[(0, 1), (1, 2)]);
        assert_eq!(towards(NodeId(2), &neighbours, |_| false)[0], None);
        assert!(towards(NodeId(2), &neighbours, |_| true)[0].is_some());
    }

    #[test]
    fn routes_in_random_networks_have_no_loops() {
        for seed in 0..50 {
            let mut prng = Prng::new(seed);
            let nodes = 2 + prng.below(20) as usize;
            let ends: Vec<(usize, usize)> = (0..nodes * 2)
                .map(|_| (prng.below(nodes as u64) as usize, prng.below(nodes as u64) as usize))
                .filter(|(one, other)| one != other)
                .collect();
            let (links, neighbours) = joined(nodes, &ends);
            for target in 0..nodes {
                let ports = towards(NodeId(target), &neighbours, |_| true);
                for start in 0..nodes {
                    let (mut at, mut steps) = (NodeId(start), 0);
                    while let Some(Port::Link(link, direction)) = ports[at.0] {
                        assert_eq!(links[link.0].sender(direction), at);
                        at = links[link.0].receiver(direction);
                        steps += 1;
                        assert!(steps < nodes, "seed {seed}: a loop from {start} to {target}");
                    }
                    assert!(steps == 0 || at == NodeId(target), "seed {seed}: a dead end");
                }
            }
        }
    }
}
