import { openSync, readFileSync, writeSync } from "node:fs";
import { createServer } from "node:https";

// Usage: node webhook-receiver-main.js PORT CERT KEY FILE PERCENT. Runs a webhook receiver that writes each
// accepted delivery to FILE before it responds, and refuses PERCENT of the deliveries at random. A message to the
// process sets the delay of its responses in milliseconds.
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
    // Write one line atomically, so that it is complete even if this process is killed.
    writeSync(taken, `${subject} ${revision}\n`);
    setTimeout(() => response.writeHead(204).end(), answersAfterMs);
  });
});
server.listen(Number(port), "127.0.0.1", () => process.send?.("listening"));
process.on("disconnect", () => process.exit());
