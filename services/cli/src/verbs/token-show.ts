import {
  GetJoinTokenResponseSchema,
  type JoinToken,
  JoinTokenService,
  type JoinTokenUse,
} from "@rollcall/api/rollcall/admin/v1/join_token_pb";
import { reachControlPlane } from "../client/control-plane.ts";
import type { Verb } from "../invocation.ts";
import { choosePaint, outputFormat } from "../output/format.ts";
import { type Column, TablePrinter } from "../output/table.ts";
import { printable } from "../output/text.ts";
import { grantsText, stateWord, timeText, tokenIdOf, usesText } from "../tokens/token-words.ts";

/** `token show`: one join token, and whom it let in. */
export const tokenShow: Verb = async ({ shell, args, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml"]);
  const id = tokenIdOf(args[0] ?? "");
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", JoinTokenService);
  const answer = await control.attempt("admin", `show join token ${id}`, () => client.getJoinToken({ id }));
  if (format !== "table") {
    const { formatStructured, toPlain } = await import("../output/structured.ts");
    shell.out.write(await formatStructured(format, toPlain(GetJoinTokenResponseSchema, answer)));
    return;
  }
  if (answer.token !== undefined) shell.out.write(formatToken(answer.token));
  if (answer.lastUses.length === 0) return;
  const look = { hideHeader: false, wide: true, paint: choosePaint(shell, options) };
  shell.out.write(`\n${new TablePrinter(COLUMNS, look).print(answer.lastUses)}`);
};

function formatToken(token: JoinToken): string {
  const { revocation } = token;
  const rows: readonly (readonly [string, string])[] = [
    ["ID", token.id],
    ["Description", token.description],
    ["State", stateWord(token)],
    ["Uses", usesText(token)],
    ["Last use", timeText(token.lastUseTime)],
    ["Expires", timeText(token.expireTime, "never")],
    ["Names", token.nodeNamePattern || "any"],
    ["Grants", grantsText(token)],
    ["Created", `${timeText(token.createTime)} by ${token.creator}`],
    ...(revocation === undefined
      ? []
      : [
          ["Revoked", `${timeText(revocation.time)} by ${revocation.actor}`] as const,
          ["Why", revocation.reason] as const,
        ]),
  ];
  return rows.map(([name, value]) => `${`${name}:`.padEnd(13)}${printable(value || "-")}\n`).join("");
}

const COLUMNS: readonly Column<JoinTokenUse>[] = [
  { title: "NODE", name: "node", cell: ({ nodeId }) => ({ text: nodeId }) },
  { title: "JOINED", name: "joined", cell: ({ time }) => ({ text: timeText(time) }) },
  { title: "KEY", name: "key", cell: ({ keyFingerprint }) => ({ text: keyFingerprint }) },
];
