// Runs a keeper in its own process, from the sources: `keeper-main.ts SETTINGS`, where SETTINGS
// is JSON.
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
