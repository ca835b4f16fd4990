import { openSync, readFileSync, writeSync } from "node:fs";
import { createServer } from "node:https";

// Usage: node webhook-receiver-main.js PORT CERT KEY FILE PERCENT: a receiver of webhooks that writes what it takes to
// FILE before it answers, and refuses PERCENT of the deliveries at random. A message to it is the milliseconds after
// which it answers.
const [port = "0", certFile = "", keyFile = "", file = "", percent = "0"] = process.argv.slice(2);
const taken = openSync(file, "a");
let answersAfterMs = 0;
process.on("message", (ms) => {
  answersAfterMs = Number(ms);
});
const server = createServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, (request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    if (Math.random() * 100 < Number(percent)) {
      response.writeHead(503).end();
      return;
    }
    const { subject, revision } = JSON.parse(Buffer.concat(chunks).toString());
    // One line, which is whole or not there, and outlives this process.
    writeSync(taken, `${subject} ${revision}\n`);
    setTimeout(() => response.writeHead(204).end(), answersAfterMs);
  });
});
server.listen(Number(port), "127.0.0.1", () => process.send?.("listening"));
process.on("disconnect", () => process.exit());
