import type { Migration } from "kysely";
import { log } from "./0001-log.ts";
import { nodes } from "./0002-nodes.ts";
import { sessions } from "./0003-sessions.ts";
import { access } from "./0004-access.ts";
import { compaction } from "./0005-compaction.ts";
import { relay } from "./0006-relay.ts";
import { connectionIndex } from "./0007-connection-index.ts";

/** Every migration, by the name it is remembered under. A list in code: a bundle has no folder to look through. */
export const MIGRATIONS: Readonly<Record<string, Migration>> = {
  "0001-log": log,
  "0002-nodes": nodes,
  "0003-sessions": sessions,
  "0004-access": access,
  "0005-compaction": compaction,
  "0006-relay": relay,
  "0007-connection-index": connectionIndex,
};
