import { AccessService, type WhoAmIResponse, WhoAmIResponseSchema } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { roleWord, timeWord } from "../access/access-words.ts";
import { displayAddress } from "../client/addresses.ts";
import { reachControlPlane } from "../client/control-plane.ts";
import type { Verb } from "../invocation.ts";
import { outputFormat } from "../output/format.ts";
import { pad, printable } from "../output/text.ts";

const WIDTH = 9;

/** `whoami`: who the caller is there, or with --output a rollcall.admin.v1.WhoAmIResponse. */
export const whoami: Verb = async ({ shell, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml"]);
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", AccessService);
  const me = await control.attempt("admin", "ask who I am", () => client.whoAmI({}));
  if (format !== "table") {
    const { formatStructured, toPlain } = await import("../output/structured.ts");
    shell.out.write(await formatStructured(format, toPlain(WhoAmIResponseSchema, me)));
    return;
  }
  const context = options.chosenContext?.()?.context.name ?? "-";
  const rows = [
    ...describe(me),
    ["cluster", me.clusterId],
    ["server", displayAddress(control.addresses.admin)],
    ["context", context],
  ];
  for (const [key = "", value = ""] of rows) {
    shell.out.write(`${pad(key, WIDTH)}${printable(value)}\n`);
  }
};

function describe({ actor, role, expireTime, credential }: WhoAmIResponse): readonly string[][] {
  const common = [
    ["actor", actor],
    ["role", roleWord(role)],
    ["expires", timeWord(expireTime, "never")],
  ];
  if (credential.case === "person") return [...common, ["issuer", credential.value.issuer]];
  return [...common, ["name", credential.value?.name ?? "-"]];
}
