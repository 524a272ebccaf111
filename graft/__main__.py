from graft.cli import main

main(prog_name="graft")
