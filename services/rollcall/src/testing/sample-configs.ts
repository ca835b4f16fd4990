import { fileURLToPath } from "node:url";
import { agentKeys, checkAgentConfig } from "@rollcall/agent";
import { ALL_KEYS } from "../config/all-keys.ts";
import { loadControlPlaneConfig } from "../config/control-plane-config.ts";
import { loadConfiguration } from "../config/load.ts";
import { PROCESS_KEYS } from "../config/process-keys.ts";

/** Configuration files of other programs, written from their documentation. */
export const SAMPLES = fileURLToPath(new URL("./samples", import.meta.url));

/** The names of all samples. */
export const ALL_SAMPLES = [
  "bacalhau-orchestrator.yaml",
  "bacalhau-compute.yaml",
  "bacalhau-1.4.yaml",
  "host_config.py",
  "runner_config.py",
];

const AGENT_KEYS = {
  ...agentKeys,
  "Log.Level": PROCESS_KEYS["Log.Level"],
  "Log.Format": PROCESS_KEYS["Log.Format"],
};

/** Load a file as a process of the control plane does. */
export function controlPlane(file: string | undefined, env: Readonly<Record<string, string>> = {}, cwd = SAMPLES) {
  return loadControlPlaneConfig({ shell: { env, cwd }, file, flags: {} });
}

/** Load a file as an agent does. */
export function agent(file: string, cwd = SAMPLES) {
  return loadConfiguration(
    { keys: AGENT_KEYS, alsoKnown: ALL_KEYS, check: checkAgentConfig },
    { shell: { env: {}, cwd }, file, flags: {} },
  );
}
