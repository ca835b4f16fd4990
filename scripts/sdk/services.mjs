// Reads the services of a client, with their names and addresses, from one list for all languages.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { WORKSPACE } from "../packages/workspace.mjs";

export const SERVICES_FILE = join(WORKSPACE, "sdk/services.json");
/** Services that clients lack. One is for authors of agents, and the other is for the console's pages. */
const OF_OTHERS = ["rollcall.health.v1.HealthService", "rollcall.console.v1.ConsoleService"];

/**
 * Read the services of a client, with their descriptors, in the order of the list. Rejects if the schema has a
 * service that is not on the list, or the list has a service that is not in the schema.
 */
export async function clientServices(files) {
  const listed = JSON.parse(await readFile(SERVICES_FILE, "utf8"));
  const ours = files.filter(({ name }) => name.startsWith("rollcall/"));
  const found = new Map(
    ours.flatMap((file) =>
      file.service.map((service, index) => [`${file.package}.${service.name}`, { file, service, index }]),
    ),
  );
  const unlisted = [...found.keys()].filter((name) => !(name in listed) && !OF_OTHERS.includes(name));
  if (unlisted.length > 0) throw new Error(`sdk/services.json lacks ${unlisted.join(", ")}`);
  return Object.entries(listed).map(([name, entry]) => {
    const service = found.get(name);
    if (service === undefined) throw new Error(`${name} is in sdk/services.json but not in the schema`);
    return { ...entry, ...service };
  });
}

/** Convert a name such as "join_tokens" to "joinTokens". */
export function toCamelCase(name) {
  return name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
}

/** Return the comment above a declaration, as lines; empty if there is none. */
export function commentAt(file, path) {
  const at = path.join();
  const found = file.sourceCodeInfo?.location.find((location) => location.path.join() === at);
  return (found?.leadingComments ?? "")
    .trim()
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/** Return the reasons of errors, with their comments. */
export function reasonsIn(files) {
  const file = files.find(({ name }) => name === "rollcall/node/v1/error_reason.proto");
  return file.enumType[0].value.slice(1).map(({ name }, index) => ({
    reason: name.replace(/^ERROR_REASON_/, ""),
    comment: commentAt(file, [5, 0, 2, index + 1]),
  }));
}
