extends "case.gd"

const MODES := [
	MultiplayerPeer.TRANSFER_MODE_UNRELIABLE, MultiplayerPeer.TRANSFER_MODE_UNRELIABLE_ORDERED, MultiplayerPeer.TRANSFER_MODE_RELIABLE
]


func test_each_mode_and_channel_arrives_as_it_was_sent_as_with_enet() -> void:
	await each_kind(1, func(kind: String, server: MultiplayerPeer, clients: Array[MultiplayerPeer]) -> void:
		var client := clients[0]
		for channel in 4:
			for mode: int in MODES:
				client.transfer_channel = channel
				client.transfer_mode = mode
				client.set_target_peer(1)
				var packet := PackedByteArray([channel, mode])
				same(client.put_packet(packet), OK, kind)
				await until(func() -> bool:
					client.poll()
					server.poll()
					return server.get_available_packet_count() > 0, "a packet of " + kind)
				same([server.get_packet_peer(), server.get_packet_mode()], [client.get_unique_id(), mode], kind)
				if kind == "ours" or mode == MultiplayerPeer.TRANSFER_MODE_RELIABLE or channel > 0:
					same(server.get_packet_channel(), channel, kind)
				same(server.get_packet(), packet, kind)
				same(server.get_packet_error(), OK, kind))


func test_a_target_is_one_all_or_all_but_one_as_with_enet() -> void:
	await each_kind(3, func(kind: String, server: MultiplayerPeer, clients: Array[MultiplayerPeer]) -> void:
		var last := clients[2].get_unique_id()
		for sent in [[0, 1], [last, 2], [-last, 3]]:
			server.set_target_peer(sent[0])
			same(server.put_packet([sent[1]]), OK, kind)
		server.set_target_peer(12_345)
		same(server.put_packet([4]), ERR_INVALID_PARAMETER, kind + ": nobody")
		var got := [[], [], []]
		await until(func() -> bool:
			server.poll()
			for index in 3:
				clients[index].poll()
				while clients[index].get_available_packet_count() > 0:
					got[index].append(clients[index].get_packet()[0])
			return got == [[1, 3], [1, 3], [1, 2]], kind)
		same(got, [[1, 3], [1, 3], [1, 2]], kind)
		clients[0].set_target_peer(last)
		same(clients[0].put_packet([5]), ERR_INVALID_PARAMETER, kind + ": clients send to the server"))


func test_ten_thousand_packets_each_way_arrive_once_and_in_order_with_one_in_ten_lost() -> void:
	for seed in [1, 2]:
		var server := serve()
		var between := relay(server.get_local_port(), seed)
		var client := join(between.port())
		await connected(server, [client])
		server.set_target_peer(client.get_unique_id())
		client.set_target_peer(1)
		var sent := [0]
		var got := {server: 0, client: 0}
		await until(func() -> bool:
			for count in 200:
				if sent[0] < 10_000:
					for peer: MultiplayerPeer in got:
						check(peer.put_packet(var_to_bytes(sent[0])) == OK, "put_packet")
					sent[0] += 1
			for peer: MultiplayerPeer in got:
				peer.poll()
				while peer.get_available_packet_count() > 0:
					if bytes_to_var(peer.get_packet()) != got[peer]:
						check(false, "seed %d: not in order after %d" % [seed, got[peer]])
					got[peer] += 1
			return got[server] == 10_000 and got[client] == 10_000, "all arrive, seed %d" % seed)
		same([got[server], got[client]], [10_000, 10_000], "seed %d" % seed)
		check(between.lost > 20, "the network loses: %d, seed %d" % [between.lost, seed])
		relays.clear()


func test_a_long_packet_arrives_in_every_mode_and_one_over_the_limit_is_an_error() -> void:
	var server := serve()
	var client := join(server.get_local_port())
	await connected(server, [client])
	for mode: int in MODES:
		for size: int in [1, 1100, 1300, 5000, 1_000_000]:
			var packet := PackedByteArray()
			packet.resize(size)
			packet.fill(size % 251)
			client.transfer_mode = mode
			same(client.put_packet(packet), OK, "mode %d, %d bytes" % [mode, size])
			await until(func() -> bool:
				client.poll()
				server.poll()
				return server.get_available_packet_count() > 0, "mode %d, %d bytes" % [mode, size])
			check(server.get_packet() == packet, "mode %d, %d bytes are the same" % [mode, size])
	var longest := PackedByteArray()
	longest.resize(1 << 24)
	longest.append(1)
	same(client.put_packet(longest), FAILED, "too long")
	same(client.get_connection_status(), MultiplayerPeer.CONNECTION_CONNECTED, "the session goes on")


func test_what_a_frame_sends_leaves_in_that_frame() -> void:
	var server := serve()
	var client := join(server.get_local_port())
	await connected(server, [client])
	await frames(3)
	var before: int = client.get_peer_statistics(1).packets_sent
	client.put_packet([1])
	client.put_packet([2])
	same(client.get_peer_statistics(1).packets_sent, before, "nothing leaves at once: what a frame sends shares a datagram")
	await tree.process_frame # deferred calls come before it, and no poll
	same(client.get_peer_statistics(1).packets_sent, before + 1, "both leave in one datagram")


func test_a_peer_that_takes_nothing_loses_its_session_instead_of_filling_memory() -> void:
	var server := serve()
	var client := join(server.get_local_port())
	await connected(server, [client])
	var left := []
	server.session_closed.connect(func(_peer: int, code: int, _text: String, _reason: String) -> void: left.append(code))
	var packet := PackedByteArray()
	packet.resize(8 << 20)
	for count in 40:
		same(server.put_packet(packet), OK, "put_packet")
		server.poll()
	await until(func() -> bool:
		server.poll()
		return left.size() == 1, "the session ends")
	same(left, [0xfeff], "too much waits")
	check(OS.get_static_memory_usage() < 512 << 20, "memory")


func test_packets_that_nobody_reads_stay_with_their_sender() -> void:
	var server := serve()
	var client := join(server.get_local_port())
	await connected(server, [client])
	var packet := PackedByteArray()
	packet.resize(1 << 20)
	var arrived := [0]
	for count in 40:
		same(client.put_packet(packet), OK, "put_packet")
	await until(func() -> bool:
		client.poll()
		server.poll()
		return server.get_available_packet_count() == 16, "16 MiB arrive")
	for count in 50:
		client.poll()
		server.poll()
		await tree.process_frame
	same(server.get_available_packet_count(), 16, "16 MiB wait")
	await until(func() -> bool:
		client.poll()
		server.poll()
		while server.get_available_packet_count() > 0:
			arrived[0] += server.get_packet().size() >> 20
		return arrived[0] == 40, "all arrive once they are read")
	same(arrived[0], 40, "MiB")
