use super::*;
use whitewater::kcp::Congestion;

fn parse(line: &str) -> Result<Command, String> {
    Args::parse(line.split_whitespace().map(str::to_owned))
}

fn args(line: &str) -> Args {
    match parse(line) {
        Ok(Command::Run(args)) => *args,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn what_is_wrong_is_named_in_a_line() {
    for (line, expected) in [
        ("--modes fast,sluggish", "no mode 'sluggish'"),
        ("--modes fast,,turbo", "no mode ''"),
        ("--modes fast,turbo,fast", "mode fast is there twice"),
        ("--workload all", "no workload 'all'"),
        ("--link moon", "no link 'moon'"),
        ("--loss 91", "--loss wants a number from 0 to 90, not '91'"),
        ("--loss NaN", "not 'NaN'"),
        ("--loss -1", "not '-1'"),
        ("--rtt inf", "--rtt wants"),
        ("--jitter 5ms", "--jitter wants"),
        ("--seeds 0", "--seeds wants a number from 1 to 100, not '0'"),
        ("--seeds 1.5", "--seeds wants"),
        ("--seconds 0", "--seconds wants"),
        ("--seconds 601", "--seconds wants"),
        ("--seconds", "--seconds wants a value"),
        ("--out=", "--out wants"),
        ("--speed 3", "there is no flag --speed"),
        ("fast", "there is no flag fast"),
        ("--loss 1 --loss=2", "--loss is there twice"),
        ("--real=yes", "--real takes no value"),
        ("--real --link wifi", "--link has no meaning with --real"),
        ("--real --seeds 3", "--seeds has no meaning with --real"),
        ("--plot", "--plot wants a log"),
        ("--plot=", "--plot wants a log"),
        ("--plot --loss 3", "--plot wants a log"),
        ("--plot a.jsonl --loss 3", "--loss has no meaning with --plot FILE"),
        ("--plot a.jsonl --out a.jsonl", "--out wants the name of another file"),
        ("--plot a.jsonl --channel x", "--channel wants a number from 0 to 255"),
        ("--events", "--events wants a value"),
        ("--events=", "--events wants the name of a file"),
        ("--events a --plot b", "--plot draws what --events writes"),
        ("--events a --modes fast,turbo", "--events is of one mode"),
        ("--events a --modes sluggish", "no mode 'sluggish'"),
        ("--events a --out b", "--out has no meaning with --events alone"),
        ("--events a --plot --real", "--real has no meaning with --events"),
        ("--events a --seeds 3", "--seeds has no meaning with --events"),
        ("--events a --workload bulk --seconds 3", "--seconds has no meaning with bulk"),
        ("--workload bulk", "no workload 'bulk'"),
        ("--modes delay", "no mode 'delay'"),
        ("--seed 3", "--seed has no meaning without --events"),
    ] {
        let wrong = parse(line).expect_err(line);
        assert!(wrong.contains(expected) && !wrong.contains('\n'), "{line}: {wrong}");
    }
}

#[test]
fn the_default_is_input_over_a_lossy_path_in_all_modes() {
    let args = args("");
    assert_eq!((args.workload, args.seeds, args.real), (Workload::input60(), 10, false));
    assert_eq!(args.modes.len(), MODES.split(',').count());
    assert_eq!(args.link.loss, Loss::Random(0.1));
    assert_eq!([args.link.delay, args.link.jitter].map(|time| time.as_millis()), [30, 6]);
    assert_eq!(
        args.title(),
        "60 messages of 100 bytes per second for 60 s; each way 10 % lost, 30 to 36 ms; 10 runs"
    );
}

#[test]
fn a_log_is_of_three_seconds_and_its_picture_beside_it() {
    let Ok(Command::Events(events)) = parse("--events x/run.jsonl --plot --seed 5") else { panic!("no run") };
    assert_eq!((events.workload.traffic.count, events.seed, events.mode.name.as_str()), (180, 5, "by time"));
    let plot = events.plot.unwrap();
    assert_eq!((plot.log.to_str(), plot.out.to_str()), (Some("x/run.jsonl"), Some("x/run.svg")));
    assert_eq!(plot.title, "60 messages of 100 bytes per second, by time; each way 10 % lost, 30 to 36 ms");
    let Ok(Command::Events(events)) = parse("--events run --modes delay --workload bulk") else {
        panic!("no run")
    };
    assert!(
        events.plot.is_none()
            && events.mode.ends.iter().all(|end| matches!(end.config.congestion, Congestion::Delay))
    );
    let Ok(Command::Plot(plot)) = parse("--plot old.jsonl --out=new.svg --channel 2") else {
        panic!("no plot")
    };
    assert_eq!((plot.out.to_str(), plot.channel, plot.title.as_str()), (Some("new.svg"), 2, "old.jsonl"));
}

#[test]
fn flags_change_what_they_name() {
    let wifi = args("--link wifi --loss 5 --seconds 6 --workload duplex --modes by-time,fast --out=x.svg");
    assert_eq!(wifi.link, LinkConfig { loss: Loss::Random(0.05), ..LinkConfig::wifi() });
    assert_eq!((wifi.workload.traffic.count, wifi.workload.wanted), (360, 360));
    assert!(matches!(wifi.workload.answer, Answer::Traffic(Traffic { count: 120, .. })));
    let names: Vec<_> = wifi.modes.iter().map(|mode| mode.name.as_str()).collect();
    assert_eq!((names.as_slice(), wifi.out.to_str()), (["by time", "fast"].as_slice(), Some("x.svg")));
    let real = args("--real --rtt 20 --jitter 0");
    assert_eq!((real.relay.delay, real.relay.jitter), (Duration::from_millis(10), Duration::ZERO));
    assert!(real.real && real.workload.traffic.count < 601);
    assert!(matches!(parse("--real --help"), Ok(Command::Help)));
}
