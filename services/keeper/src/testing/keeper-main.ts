// A keeper as a process of its own, from the sources: `keeper-main.ts SETTINGS`, which are JSON.
import process from "node:process";
import { runProcess, silentLogger } from "@rollcall/process";
import { startKeeper } from "../start-keeper.ts";

const settings = JSON.parse(process.argv[2] ?? "{}");
const code = await runProcess({
  process,
  log: silentLogger,
  start: () => startKeeper({ settings, version: "0.1.0", log: silentLogger }),
});
process.exit(code);
