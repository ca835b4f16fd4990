// Follow the log. Prints each event exactly once, across restarts of the control plane and of this
// program.
//   node follow.mjs SERVER TOKEN_FILE [BOOKMARK_FILE]
import { readFile, writeFile } from "node:fs/promises";
import { argv, stdout } from "node:process";
import { Client } from "@rollcall/client";

const [server = "127.0.0.1:7700", tokenFile = "token", bookmarkFile] = argv.slice(2);
const client = new Client({ server, tokenFile });
const saved = bookmarkFile === undefined ? "" : await readFile(bookmarkFile, "utf8").catch(() => "");
const beginning = /** @type {const} */ ({ start: { case: "fromBeginning", value: true } });
const watch = client.watchEvents(beginning, saved === "" ? {} : { bookmark: saved });
for await (const event of watch) {
  stdout.write(`${event.revision} ${event.type} ${event.subject}\n`);
  // Save the bookmark together with the result of handling its event. A program that stops between the two
  // handles the event again.
  if (bookmarkFile !== undefined) await writeFile(bookmarkFile, watch.bookmark ?? "");
}
