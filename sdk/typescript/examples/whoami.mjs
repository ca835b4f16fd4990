// Ask the control plane who the caller is. Without arguments, the client finds the control plane and the token as
// the command line does. With arguments, it trusts the authority with the given fingerprint.
//   node whoami.mjs [SERVER FINGERPRINT]
import { argv, stdout } from "node:process";
import { Client } from "@rollcall/client";

const [server, caFingerprint] = argv.slice(2);
const client = new Client(server !== undefined && caFingerprint !== undefined ? { server, caFingerprint } : {});
const { actor } = await client.access.whoAmI();
stdout.write(`${actor}\n`);
client.close();
