use core::time::Duration;
use ctcp_base::{Probability, Rate};
use ctcp_netem::{LossModel, PathConfig};
use ctcp_proto::TransportConfig;
use ctcp_sim::application::script::{Script, StreamPlan};
use ctcp_sim::topology::Pair;

#[test]
fn heavy() {
    for (mbit, rtt) in [(10, 60), (25, 40), (10, 20)] {
        for loss in [0.2, 0.3, 0.36, 0.4, 0.45, 0.5] {
            let l = LossModel::Bernoulli(Probability::new(loss).expect("a probability"));
            let path = PathConfig::new(Rate::from_megabits_per_second(mbit), Duration::from_millis(rtt), l);
            let mut out = String::new();
            for seed in 1..4 {
                let transport = TransportConfig::default();
                let script = Script::of_client(vec![StreamPlan::download(Duration::ZERO, 1_000_000_000)]);
                let mut pair = Pair::several(seed, &[path.clone()], [&transport, &transport], &script);
                pair.connect().expect("a first connection");
                let mut last = 0;
                for _ in 0..4 {
                    pair.simulation.run_for(Duration::from_secs(5), |_| false);
                    let now = pair.simulation.host(pair.client).bytes_read();
                    out += &format!("{:.3} ", (now - last) as f64 * 8e-6 / 5.0 / mbit as f64);
                    last = now;
                }
                let stats = pair.simulation.host(pair.server).stats();
                out += &format!("[w {:.0} loss {:.2}] ", stats.window, stats.loss);
            }
            println!("{mbit} Mbit/s {rtt} ms, {loss}: {out}");
        }
    }
}
