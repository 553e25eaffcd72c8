extends "case.gd"

const Talk := preload("document_1.gd")
const Watch := preload("document_2.gd")


func test_the_scripts_of_the_document_do_what_it_says() -> void:
	var server := Talk.new()
	branch("server", null).add_child(server)
	server.host()
	var client := Talk.new()
	branch("client", null).add_child(client)
	client.join("127.0.0.1")
	for node: Node in [server, client]:
		peers.append(node.multiplayer.multiplayer_peer)
	await until(func() -> bool:
		return server.multiplayer.get_peers().size() == 1 and client.multiplayer.get_peers() == PackedInt32Array([1]), "they connect")
	var watch := Watch.new()
	server.get_parent().add_child(watch)
	watch.watch(client.multiplayer.multiplayer_peer)
	var heard := []
	client.multiplayer.multiplayer_peer.session_closed.connect(
		func(_id: int, code: int, text: String, _reason: String) -> void: heard.append([code, text]))
	watch.throw_out(client.multiplayer.get_unique_id())
	await until(func() -> bool: return heard.size() == 1, "the client hears why")
	same(heard, [[7, "no cheating"]], "why")
