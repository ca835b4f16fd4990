// Which services a client has, by which names and at which addresses: one list for every language.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { WORKSPACE } from "../packages/workspace.mjs";

export const SERVICES_FILE = join(WORKSPACE, "sdk/services.json");
/** The agents' own service is for those that write an agent, the console's for its pages. */
const OF_OTHERS = ["rollcall.health.v1.HealthService", "rollcall.console.v1.ConsoleService"];

/** The services of a client, with their descriptors, in the order of the list. Rejects for one that no client has. */
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
    if (service === undefined) throw new Error(`the schema lacks ${name}, which sdk/services.json has`);
    return { ...entry, ...service };
  });
}

/** "join_tokens" is "joinTokens". */
export function toCamelCase(name) {
  return name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
}

/** The comment above a declaration, as lines; none for an empty one. */
export function commentAt(file, path) {
  const at = path.join();
  const found = file.sourceCodeInfo?.location.find((location) => location.path.join() === at);
  return (found?.leadingComments ?? "")
    .trim()
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/** The reasons of errors, with their comments. */
export function reasonsIn(files) {
  const file = files.find(({ name }) => name === "rollcall/node/v1/error_reason.proto");
  return file.enumType[0].value.slice(1).map(({ name }, index) => ({
    reason: name.replace(/^ERROR_REASON_/, ""),
    comment: commentAt(file, [5, 0, 2, index + 1]),
  }));
}
