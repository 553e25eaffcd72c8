extends "case.gd"


# What both ends of a session hear.
class Ears:
	var heard := []

	func listen(peer: MultiplayerPeer) -> Ears:
		peer.peer_disconnected.connect(func(id: int) -> void: heard.append(["disconnected", id]))
		if peer is WhitewaterMultiplayerPeer:
			peer.session_closed.connect(func(_id: int, code: int, text: String, _reason: String) -> void:
				heard.append(["closed", code, text]))
		return self


func test_a_kick_has_a_code_and_a_text() -> void:
	var server := serve()
	var client := join(server.get_local_port())
	await connected(server, [client])
	var at_client := Ears.new().listen(client)
	var at_server := Ears.new().listen(server)
	var id := client.get_unique_id()
	same(server.kick(id, 0xff00, "reserved"), ERR_INVALID_PARAMETER, "a code of the library")
	same(server.kick(id, 70_000, ""), ERR_INVALID_PARAMETER, "no code")
	same(server.kick(id ^ 1, 4, ""), ERR_INVALID_PARAMETER, "nobody")
	same(client.kick(id, 4, ""), ERR_INVALID_PARAMETER, "a client has a session with the server only")
	same(server.kick(id, 4, "x".repeat(129)), ERR_INVALID_PARAMETER, "a long text")
	same(server.kick(id, 42, "no cheating"), OK, "kick")
	await until(func() -> bool:
		server.poll()
		client.poll()
		return at_client.heard.size() == 2 and at_server.heard.size() == 2, "both hear it")
	same(at_client.heard, [["closed", 42, "no cheating"], ["disconnected", 1]], "the client")
	same(at_server.heard, [["closed", 42, ""], ["disconnected", id]], "the server")
	same(client.get_connection_status(), MultiplayerPeer.CONNECTION_DISCONNECTED, "status")


func test_a_disconnect_is_heard_at_both_ends_as_with_enet() -> void:
	await each_kind(2, func(kind: String, server: MultiplayerPeer, clients: Array[MultiplayerPeer]) -> void:
		var ids := [clients[0].get_unique_id(), clients[1].get_unique_id()]
		var gone := []
		server.peer_disconnected.connect(func(id: int) -> void: gone.append(id))
		var lost := []
		clients[0].peer_disconnected.connect(func(id: int) -> void: lost.append(id))
		server.disconnect_peer(ids[0])
		await until(func() -> bool:
			server.poll()
			clients[0].poll()
			return gone == [ids[0]] and lost == [1], kind + ": the server disconnects")
		clients[1].disconnect_peer(1)
		await until(func() -> bool:
			server.poll()
			if clients[1].get_connection_status() == MultiplayerPeer.CONNECTION_CONNECTED:
				clients[1].poll()
			return gone == ids, kind + ": the client disconnects")
		same([gone, lost], [ids, [1]], kind))


func test_a_forced_disconnect_is_not_heard_where_it_is_called() -> void:
	var server := serve()
	var client := join(server.get_local_port())
	await connected(server, [client])
	var at_server := Ears.new().listen(server)
	var at_client := Ears.new().listen(client)
	server.disconnect_peer(client.get_unique_id(), true)
	await until(func() -> bool:
		server.poll()
		client.poll()
		return at_client.heard.size() == 2, "the client hears it")
	same(at_server.heard, [], "the server")


func test_what_was_sent_before_the_end_is_read_before_the_end_is_heard() -> void:
	var server := serve()
	var client := join(server.get_local_port())
	await connected(server, [client])
	var at_server := Ears.new().listen(server)
	for number in 100:
		client.put_packet([number])
	client.disconnect_peer(1)
	var got := []
	await until(func() -> bool:
		server.poll()
		client.poll()
		while server.get_available_packet_count() > 0:
			got.append(server.get_packet()[0])
			same(at_server.heard, [], "before the end")
		return at_server.heard.size() == 2, "the end")
	same(got, range(100), "all packets")


func test_a_server_that_closes_or_refuses_or_is_full_says_so() -> void:
	var server := serve(1)
	server.refuse_new_connections = true
	var client := join(server.get_local_port())
	var at_client := Ears.new().listen(client)
	await until(func() -> bool:
		server.poll()
		client.poll()
		return at_client.heard.size() == 1, "it is refused")
	same(at_client.heard, [["closed", 0, ""]], "refused")
	server.refuse_new_connections = false
	client = join(server.get_local_port())
	await connected(server, [client])
	var second := join(server.get_local_port())
	var at_second := Ears.new().listen(second)
	await until(func() -> bool:
		server.poll()
		second.poll()
		client.poll()
		return at_second.heard.size() == 1, "it is full")
	at_client = Ears.new().listen(client)
	server.close()
	await until(func() -> bool:
		client.poll()
		return at_client.heard.size() == 2, "the client hears the close")
	same(at_client.heard, [["closed", 0, ""], ["disconnected", 1]], "closed")


func test_scripts_may_close_from_within_a_signal() -> void:
	var server := serve()
	var clients: Array[MultiplayerPeer] = [join(server.get_local_port()), join(server.get_local_port())]
	await connected(server, clients)
	var calls := [0]
	server.peer_disconnected.connect(func(_id: int) -> void:
		calls[0] += 1
		server.put_packet([1])
		server.close())
	clients[0].close()
	clients[1].close()
	await until(func() -> bool:
		server.poll()
		return server.get_connection_status() == MultiplayerPeer.CONNECTION_DISCONNECTED, "the server closes")
	await frames(3)
	same(calls[0], 1, "after the close, nothing is heard")
	same(server.put_packet([1]), ERR_UNCONFIGURED, "a closed peer")
	same([server.get_available_packet_count(), server.get_packet(), server.get_packet_peer()], [0, PackedByteArray(), 0], "a closed peer")
