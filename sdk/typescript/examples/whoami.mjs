// Ask the control plane who calls. Without arguments it finds the control plane, and the token, as the command line
// does; with them it trusts the authority of a fingerprint.
//   node whoami.mjs [SERVER FINGERPRINT]
import { argv, stdout } from "node:process";
import { Client } from "@rollcall/client";

const [server, caFingerprint] = argv.slice(2);
const client = new Client(server !== undefined && caFingerprint !== undefined ? { server, caFingerprint } : {});
const { actor } = await client.access.whoAmI();
stdout.write(`${actor}\n`);
client.close();
