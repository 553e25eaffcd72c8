extends "case.gd"


func test_a_client_gets_a_number_of_its_own_and_both_ends_hear_of_the_other() -> void:
	var server := serve()
	var seen := []
	server.peer_connected.connect(func(id: int) -> void: seen.append(id))
	var clients: Array[MultiplayerPeer] = []
	for index in 3:
		var client := join(server.get_local_port())
		same(client.get_connection_status(), MultiplayerPeer.CONNECTION_CONNECTING, "status")
		client.peer_connected.connect(func(id: int) -> void: same(id, 1, "the server's number"))
		clients.append(client)
	await connected(server, clients)
	same(server.get_unique_id(), 1, "the server's own number")
	var numbers := []
	for client in clients:
		check(client.get_unique_id() > 1, "a number")
		numbers.append(client.get_unique_id())
	seen.sort()
	numbers.sort()
	same(seen, numbers, "the server knows the numbers")
	check(numbers[0] != numbers[1] and numbers[1] != numbers[2], "they differ")


func test_what_protects_a_session_has_to_be_set_and_to_be_right() -> void:
	var peer := WhitewaterMultiplayerPeer.new()
	same(peer.create_server(0), ERR_UNCONFIGURED, "nothing is set")
	same(peer.create_client("127.0.0.1", 9), ERR_UNCONFIGURED, "nothing is set")
	peer.psk = SECRET
	peer.insecure = true
	same(peer.create_server(0), ERR_UNCONFIGURED, "two are set")
	peer.insecure = false
	peer.psk = SECRET.slice(1)
	same(peer.create_server(0), ERR_UNCONFIGURED, "31 bytes")
	var zeros := PackedByteArray()
	zeros.resize(32)
	peer.psk = zeros
	same(peer.create_server(0), ERR_UNCONFIGURED, "zeros")
	peer.psk = SECRET
	for wrong in [["channel_count", 0, 4], ["channel_count", 11, 4], ["timeout", 0.5, 20.0], ["timeout", -1.0, 20.0],
			["timeout", NAN, 20.0], ["key_id", 256, 0]]:
		peer.set(wrong[0], wrong[1])
		same(peer.create_server(0), ERR_UNCONFIGURED, str(wrong))
		peer.set(wrong[0], wrong[2])
	same(peer.create_server(70_000), ERR_INVALID_PARAMETER, "a port")
	same(peer.create_server(0, 0), ERR_UNCONFIGURED, "no client")
	same(peer.create_client("no such host.invalid", 9), ERR_CANT_CREATE, "an address")
	same(peer.get_connection_status(), MultiplayerPeer.CONNECTION_DISCONNECTED, "nothing is open")
	same(peer.create_server(0), OK, "all is right")
	same(peer.create_server(0), ERR_ALREADY_IN_USE, "open")
	peer.close()
	same(peer.create_server(0), OK, "closed and open again")
	peer.close()


func test_a_server_listens_on_all_addresses_or_on_one() -> void:
	for to in [["*", "127.0.0.1"], ["127.0.0.1", "127.0.0.1"], ["*", "::1"]]:
		var server := whitewater()
		server.set_bind_ip(to[0])
		same(server.create_server(0), OK, str(to))
		var client := whitewater()
		same(client.create_client(to[1], server.get_local_port()), OK, str(to))
		await connected(server, [client])
		same(server.get_peer_address(client.get_unique_id()), to[1], "where the client is")
	var server := whitewater()
	server.set_bind_ip("192.0.2.1") # nobody's, RFC 5737
	same(server.create_server(0), ERR_CANT_CREATE, "another's address")


func test_the_most_channels_and_the_longest_timeout_can_be_had() -> void:
	var server := whitewater()
	var client := whitewater()
	for peer: WhitewaterMultiplayerPeer in [server, client]:
		peer.channel_count = 10
		peer.timeout = 120.0
		peer.protocol_id = -1
	same(server.create_server(0, 4095), OK, "create_server")
	same(client.create_client("localhost", server.get_local_port()), OK, "create_client")
	await connected(server, [client])
	client.transfer_channel = 9
	same(client.put_packet([1]), OK, "the last channel")
	await until(func() -> bool:
		client.poll()
		server.poll()
		return server.get_available_packet_count() == 1, "the packet arrives")
	same(server.get_packet_channel(), 9, "its channel")
	client.transfer_channel = 10
	same(client.put_packet([1]), ERR_INVALID_PARAMETER, "one more")


func test_another_secret_another_game_and_no_answer_are_connections_that_fail() -> void:
	var server := serve()
	for fault in ["secret", "game", "channels", "silence"]:
		var client := whitewater()
		client.timeout = 2.0
		var port := server.get_local_port()
		match fault:
			"secret": client.psk = SECRET.slice(16) + SECRET.slice(15, 31)
			"game": client.protocol_id = 7
			"channels": client.channel_count = 5
			"silence": port = silent_port()
		same(client.create_client("127.0.0.1", port), OK, fault)
		var heard := []
		client.session_closed.connect(func(peer: int, code: int, text: String, reason: String) -> void:
			heard.append([peer, code, text, reason]))
		client.peer_disconnected.connect(func(_id: int) -> void: check(false, "it was never connected"))
		await until(func() -> bool:
			client.poll()
			server.poll()
			return client.get_connection_status() == MultiplayerPeer.CONNECTION_DISCONNECTED, fault)
		same(heard.size(), 1, "the end of " + fault)
		check(heard[0][3].length() > 5, "a reason: " + str(heard))


func test_a_client_verifies_a_server_by_its_key() -> void:
	var server := WhitewaterMultiplayerPeer.new()
	server.server_key = SECRET
	same(server.create_server(0), OK, "create_server")
	var client := WhitewaterMultiplayerPeer.new()
	client.server_key = WhitewaterMultiplayerPeer.public_key(SECRET)
	same(client.server_key.size(), 32, "a public key")
	same(client.create_client("127.0.0.1", server.get_local_port()), OK, "create_client")
	await connected(server, [client])
	same(WhitewaterMultiplayerPeer.public_key([1, 2]).size(), 0, "what is no key")
	server.close()
	client.close()


func test_a_connect_token_lets_one_player_in_once_and_says_who_it_is() -> void:
	var server := WhitewaterMultiplayerPeer.new()
	server.token_key = SECRET
	server.server_id = 5
	same(server.create_server(0), OK, "create_server")
	var token := mint(5, server.get_local_port())
	var clients: Array[WhitewaterMultiplayerPeer] = []
	for use in 2:
		var client := WhitewaterMultiplayerPeer.new()
		client.token = token
		client.timeout = 2.0
		same(client.create_client("", 0), OK, "create_client")
		var heard := []
		client.session_closed.connect(func(_peer: int, _code: int, _text: String, reason: String) -> void: heard.append(reason))
		if use == 0:
			await connected(server, [client])
			same(server.get_peer_user(client.get_unique_id()).get_string_from_utf8(), "player 7", "who it is")
		else:
			await until(func() -> bool:
				server.poll()
				client.poll()
				return heard.size() == 1, "the second use fails")
		clients.append(client)
	var other := WhitewaterMultiplayerPeer.new()
	other.token = mint(6, server.get_local_port())
	other.timeout = 2.0
	same(other.create_client("", 0), OK, "create_client")
	await until(func() -> bool:
		server.poll()
		other.poll()
		return other.get_connection_status() == MultiplayerPeer.CONNECTION_DISCONNECTED, "a token for another server fails")
	other.token = [1, 2, 3]
	same(other.create_client("", 0), ERR_UNCONFIGURED, "no token")
	server.close()


func test_a_client_says_who_it_is_without_a_token() -> void:
	var server := serve()
	var client := whitewater()
	client.user = "player 8".to_utf8_buffer()
	same(client.create_client("127.0.0.1", server.get_local_port()), OK, "create_client")
	await connected(server, [client])
	same(server.get_peer_user(client.get_unique_id()).get_string_from_utf8(), "player 8", "who it is")
	same(server.get_peer_user(12), PackedByteArray(), "nobody")


func test_a_server_sends_a_client_to_another_one() -> void:
	var server := serve()
	var other := WhitewaterMultiplayerPeer.new()
	other.token_key = SECRET
	other.server_id = 6
	same(other.create_server(0), OK, "create_server")
	var client := join(server.get_local_port())
	await connected(server, [client])
	var tokens := []
	client.redirected.connect(func(token: PackedByteArray) -> void: tokens.append(token))
	same(server.redirect(client.get_unique_id(), [1]), ERR_INVALID_PARAMETER, "no token")
	same(server.redirect(12, mint(6, 1)), ERR_INVALID_PARAMETER, "nobody")
	same(server.redirect(client.get_unique_id(), mint(6, other.get_local_port())), OK, "redirect")
	await until(func() -> bool:
		server.poll()
		client.poll()
		return tokens.size() == 1, "the token arrives")
	var moved := WhitewaterMultiplayerPeer.new()
	moved.token = tokens[0]
	same(moved.create_client("", 0), OK, "create_client")
	await connected(other, [moved])
	other.close()
	moved.close()


func test_statistics_and_addresses_are_those_of_the_session() -> void:
	var server := serve()
	var client := join(server.get_local_port())
	await connected(server, [client])
	var id := client.get_unique_id()
	same(server.get_peer_address(id), "127.0.0.1", "the client's address")
	same(server.get_peer_port(id), client.get_local_port(), "the client's port")
	same(client.get_peer_port(1), server.get_local_port(), "the server's port")
	var statistics := server.get_peer_statistics(id)
	check(statistics.bytes_sent > 0 and statistics.packets_received > 0 and statistics.loss <= 1.0, str(statistics))
	same(statistics.keys().size(), 7, "all figures")
	same([server.get_peer_statistics(99), server.get_peer_address(99), server.get_peer_port(99)], [{}, "", 0], "nobody")


# A connect token as a matchmaker makes it.
func mint(server_id: int, port: int) -> PackedByteArray:
	var output := []
	same(OS.execute(OS.get_environment("WHITEWATER_MINT"), [str(server_id), str(port)], output), 0, "a token")
	return output[0].strip_edges().hex_decode()


# A port whose owner says nothing.
func silent_port() -> int:
	var udp := PacketPeerUDP.new()
	udp.bind(0, "127.0.0.1")
	set_meta("silent", udp)
	return udp.get_local_port()
