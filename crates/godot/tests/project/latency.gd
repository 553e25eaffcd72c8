# Measures how late reliable packets are, beside ENet, in this process over a network with a delay that loses datagrams:
# `SCRIPT=latency.gd tests/run.sh [SECONDS]`. Prints a table.
extends SceneTree

const Case := preload("case.gd")
const DELAY := 40
const SEEDS := 3


func _initialize() -> void:
	Engine.max_fps = 240
	run()


func run() -> void:
	var args := OS.get_cmdline_user_args()
	var seconds := int(args[0]) if args.size() > 0 else 20
	print("| | loss each way | p50 | p95 | p99 | max, ms | arrived |")
	print("|---|---|---|---|---|---|---|")
	for loss: float in [0.0, 0.02, 0.1]:
		for kind in ["WhitewaterMultiplayerPeer", "ENetMultiplayerPeer"]:
			var late := []
			for seed in SEEDS:
				late.append_array(await measure(kind, loss, seed, seconds))
			late.sort()
			var at := func(part: float) -> int: return late[int((late.size() - 1) * part)]
			print("| %s | %d %% | %d | %d | %d | %d | %d |" % [kind, loss * 100, at.call(0.5), at.call(0.95), at.call(0.99), at.call(1.0), late.size()])
	quit()


# A game of 60 frames a second whose server sends a reliable packet in each; the network moves at 240.
func measure(kind: String, loss: float, seed: int, seconds: int) -> Array:
	var case := Case.new()
	case.tree = self
	var is_ours: bool = kind == "WhitewaterMultiplayerPeer"
	var server: MultiplayerPeer = case.serve() if is_ours else case.enet_serve()
	var between := case.relay(server.get_local_port() if is_ours else server.host.get_local_port(), seed)
	between.loss = 0.0
	var client: MultiplayerPeer = case.join(between.port()) if is_ours else case.enet_join(between.port())
	await case.connected(server, [client])
	between.loss = loss
	between.delay = DELAY
	var late := []
	for tick in seconds * 240:
		between.carry()
		if tick % 4 == 0:
			server.poll()
			client.poll()
			while client.get_available_packet_count() > 0:
				late.append(Time.get_ticks_msec() - int(bytes_to_var(client.get_packet())))
			server.put_packet(var_to_bytes(Time.get_ticks_msec()))
		await process_frame
	case.tidy()
	return late
