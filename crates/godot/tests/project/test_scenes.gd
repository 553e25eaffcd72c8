extends "case.gd"


class Game:
	extends Node
	var heard := []

	@rpc("any_peer", "call_remote", "reliable")
	func say(text: String) -> void:
		heard.append([multiplayer.get_remote_sender_id(), text])

	@rpc("any_peer", "call_remote", "unreliable", 2)
	func move(to: Vector2) -> void:
		heard.append([multiplayer.get_remote_sender_id(), to])


func game(name: String, peer: MultiplayerPeer) -> Game:
	var node := Game.new()
	node.name = "Game"
	branch(name, peer).add_child(node)
	return node


func test_rpcs_reach_the_server_clients_and_other_clients() -> void:
	var server_peer := serve()
	var server := game("server", server_peer)
	var first_peer := join(server_peer.get_local_port())
	var first := game("first", first_peer)
	var second_peer := join(server_peer.get_local_port())
	var second := game("second", second_peer)
	await until(func() -> bool:
		return [server, first, second].all(func(node: Game) -> bool: return node.multiplayer.get_peers().size() == 2), "all know all")
	var ids := [first.multiplayer.get_unique_id(), second.multiplayer.get_unique_id()]
	first.say.rpc_id(1, "to the server")
	await until(func() -> bool: return server.heard.size() == 1, "the server hears it")
	server.say.rpc("to all")
	await until(func() -> bool: return first.heard.size() == 1 and second.heard.size() == 1, "all hear it")
	first.say.rpc_id(ids[1], "to the other")
	await until(func() -> bool: return second.heard.size() == 2, "the other hears it")
	second.move.rpc(Vector2(1, 2))
	await until(func() -> bool: return server.heard.size() == 2 and first.heard.size() == 2, "all hear it")
	same(server.heard, [[ids[0], "to the server"], [ids[1], Vector2(1, 2)]], "the server")
	same(first.heard, [[1, "to all"], [ids[1], Vector2(1, 2)]], "the first client")
	same(second.heard, [[1, "to all"], [ids[0], "to the other"]], "the second client")


func test_the_api_of_a_scene_hears_of_failure_and_of_the_end() -> void:
	var server_peer := serve()
	var server := game("server", server_peer)
	var client_peer := whitewater()
	client_peer.psk = SECRET.slice(16) + SECRET.slice(15, 31)
	client_peer.timeout = 2.0
	same(client_peer.create_client("127.0.0.1", server_peer.get_local_port()), OK, "create_client")
	var client := game("client", client_peer)
	var heard := []
	client.multiplayer.connection_failed.connect(func() -> void: heard.append("failed"))
	client.multiplayer.connected_to_server.connect(func() -> void: heard.append("connected"))
	client.multiplayer.server_disconnected.connect(func() -> void: heard.append("disconnected"))
	await until(func() -> bool: return heard.size() == 1, "it fails")
	client.multiplayer.multiplayer_peer = join(server_peer.get_local_port())
	await until(func() -> bool: return heard.size() == 2 and server.multiplayer.get_peers().size() == 1, "it connects")
	server.multiplayer.disconnect_peer(client.multiplayer.get_unique_id())
	await until(func() -> bool: return heard.size() == 3, "it is disconnected")
	same(heard, ["failed", "connected", "disconnected"], "in this order")


func test_nodes_are_spawned_and_kept_in_step_with_one_datagram_in_ten_lost() -> void:
	var server_peer := serve()
	var between := relay(server_peer.get_local_port(), 3)
	var worlds := [branch("server", server_peer), branch("client", join(between.port()))]
	for world: Node in worlds:
		var players := Node.new()
		players.name = "Players"
		world.add_child(players)
		var spawner := MultiplayerSpawner.new()
		spawner.name = "Spawner"
		spawner.spawn_function = player
		world.add_child(spawner)
		spawner.spawn_path = spawner.get_path_to(players)
	await until(func() -> bool: return worlds[1].multiplayer.get_peers().size() == 1, "it connects")
	var here: Node2D = worlds[0].get_node("Spawner").spawn("Hero")
	var there := func() -> Node: return worlds[1].get_node_or_null("Players/Hero")
	await until(func() -> bool: return there.call() != null, "the node is spawned")
	for step in 100:
		here.position = Vector2(step, -step)
		between.carry()
		await tree.process_frame
	await until(func() -> bool: return there.call().position == Vector2(99, -99), "its position arrives")
	same(there.call().position, Vector2(99, -99), "its position")
	here.queue_free()
	await until(func() -> bool: return there.call() == null, "it goes")
	check(between.lost > 0, "the network loses: %d" % between.lost)


func player(named: String) -> Node:
	var node := Node2D.new()
	node.name = named
	var config := SceneReplicationConfig.new()
	config.add_property(".:position")
	var synchronizer := MultiplayerSynchronizer.new()
	synchronizer.replication_config = config
	node.add_child(synchronizer)
	return node
