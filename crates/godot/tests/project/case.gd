# What tests have in common: checks, waiting, peers, a bad network.
extends RefCounted

const SECRET: PackedByteArray = [
	1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8
]
# Long enough for any machine; a test that waits this long has failed.
const PATIENCE := 30.0

var tree: SceneTree
var checks := 0
var failures: Array[String] = []
var nodes: Array[Node] = []
var peers: Array[MultiplayerPeer] = []
var relays: Array[Relay] = []


func check(is_true: bool, what: String) -> void:
	checks += 1
	if not is_true:
		failures.append(what)


func same(found: Variant, wanted: Variant, what: String) -> void:
	check(found == wanted, "%s: %s, wanted %s" % [what, str(found).left(200), str(wanted).left(200)])


# Goes on with frames until something is true.
func until(is_done: Callable, what: String) -> void:
	var start := Time.get_ticks_msec()
	while not is_done.call():
		if Time.get_ticks_msec() - start > PATIENCE * 1000:
			check(false, "it never happened: " + what)
			return
		for relay in relays:
			relay.carry()
		await tree.process_frame


func frames(count: int) -> void:
	for frame in count:
		await tree.process_frame


# A peer that is set up for tests and not open yet.
func whitewater() -> WhitewaterMultiplayerPeer:
	var peer := WhitewaterMultiplayerPeer.new()
	peer.psk = SECRET
	peers.append(peer)
	return peer


func serve(max_clients := 32) -> WhitewaterMultiplayerPeer:
	var peer := whitewater()
	same(peer.create_server(0, max_clients), OK, "create_server")
	return peer


func join(port: int) -> WhitewaterMultiplayerPeer:
	var peer := whitewater()
	same(peer.create_client("127.0.0.1", port), OK, "create_client")
	return peer


func enet_serve() -> ENetMultiplayerPeer:
	var peer := ENetMultiplayerPeer.new()
	same(peer.create_server(0, 32, 8), OK, "create_server of ENet")
	peers.append(peer)
	return peer


func enet_join(port: int) -> ENetMultiplayerPeer:
	var peer := ENetMultiplayerPeer.new()
	same(peer.create_client("127.0.0.1", port, 8), OK, "create_client of ENet")
	peers.append(peer)
	return peer


# A server and clients of ours, and then of ENet, for what both have to do.
func each_kind(clients: int, body: Callable) -> void:
	var server: MultiplayerPeer = serve()
	var joined: Array[MultiplayerPeer] = []
	for client in clients:
		joined.append(join(server.get_local_port()))
	await connected(server, joined)
	await body.call("ours", server, joined)
	server = enet_serve()
	joined = []
	for client in clients:
		joined.append(enet_join(server.host.get_local_port()))
	await connected(server, joined)
	await body.call("ENet", server, joined)


func connected(server: MultiplayerPeer, clients: Array[MultiplayerPeer]) -> void:
	var count := [0]
	var heard := func(_id: int) -> void: count[0] += 1
	server.peer_connected.connect(heard)
	await until(func() -> bool:
		server.poll()
		var is_up := true
		for client in clients:
			client.poll()
			is_up = is_up and client.get_connection_status() == MultiplayerPeer.CONNECTION_CONNECTED
		return is_up and count[0] == clients.size(), "all connect")
	server.peer_connected.disconnect(heard)


# A MultiplayerAPI of its own for a branch of the tree.
func branch(name: String, peer: MultiplayerPeer) -> Node:
	var node := Node.new()
	node.name = name
	tree.root.add_child(node)
	nodes.append(node)
	var api := SceneMultiplayer.new()
	tree.set_multiplayer(api, node.get_path())
	api.multiplayer_peer = peer
	return node


func tidy() -> void:
	for node in nodes:
		tree.set_multiplayer(null, node.get_path())
		node.queue_free()
	for peer in peers:
		peer.close()
		# Functions that a signal calls may hold the peer that has the signal, which would keep both.
		for heard in peer.get_signal_list():
			for connection in peer.get_signal_connection_list(heard.name):
				connection.signal.disconnect(connection.callable)
	peers.clear()


# A network between one client and a server that loses datagrams: one in ten each way, drawn from a seed.
class Relay:
	var front := PacketPeerUDP.new()
	var back := PacketPeerUDP.new()
	var random := RandomNumberGenerator.new()
	var loss := 0.1
	var delay := 0
	var lost := 0
	var is_known := false
	var waiting: Array = []

	func _init(port: int, seed: int) -> void:
		random.seed = seed
		front.bind(0, "127.0.0.1")
		back.connect_to_host("127.0.0.1", port)

	func port() -> int:
		return front.get_local_port()

	func carry() -> void:
		var now := Time.get_ticks_msec()
		while front.get_available_packet_count() > 0:
			var packet := front.get_packet()
			if not is_known:
				front.set_dest_address(front.get_packet_ip(), front.get_packet_port())
				is_known = true
			take(back, packet, now)
		while back.get_available_packet_count() > 0:
			take(front, back.get_packet(), now)
		while waiting.size() > 0 and waiting[0][0] <= now:
			var due: Array = waiting.pop_front()
			due[1].put_packet(due[2])

	func take(to: PacketPeerUDP, packet: PackedByteArray, now: int) -> void:
		if random.randf() < loss:
			lost += 1
		else:
			waiting.append([now + delay, to, packet])


func relay(port: int, seed: int) -> Relay:
	var between := Relay.new(port, seed)
	relays.append(between)
	return between
