# Runs the tests of this folder, or those whose names contain an argument: `godot --headless --path . -s runner.gd -- kick`.
extends SceneTree

const FILES := ["test_join.gd", "test_packets.gd", "test_ends.gd", "test_scenes.gd", "test_document.gd"]


func _initialize() -> void:
	Engine.max_fps = 250
	run()


func run() -> void:
	await process_frame # before it, no node is in the tree
	var wanted := OS.get_cmdline_user_args()
	var passed := 0
	var failed := 0
	for file: String in FILES:
		if not ResourceLoader.exists("res://" + file):
			continue
		var script: GDScript = load("res://" + file)
		for method in script.get_script_method_list():
			var named: String = method.name
			if not named.begins_with("test_") or (wanted.size() > 0 and not named.contains(wanted[0])):
				continue
			var test: RefCounted = script.new()
			test.tree = self
			await test.call(named)
			test.tidy()
			await process_frame
			if test.failures.is_empty() and test.checks > 0:
				passed += 1
				print("ok      ", named)
			else:
				failed += 1
				print("FAILED  ", named, ": ", test.failures if test.checks > 0 else "it checks nothing")
	print("%d passed, %d failed" % [passed, failed])
	quit(0 if failed == 0 and passed > 0 else 1)
