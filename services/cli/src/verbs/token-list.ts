import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type JoinToken,
  JoinTokenService,
  JoinTokenState,
  ListJoinTokensResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/join_token_pb";
import { reachControlPlane } from "../client/control-plane.ts";
import type { Verb } from "../invocation.ts";
import { choosePaint, outputFormat } from "../output/format.ts";
import { type Column, csvHeader, csvRows, TablePrinter } from "../output/table.ts";
import { grantsText, stateWord, timeText, usesText } from "../tokens/token-words.ts";

/** What `token list` takes. */
interface TokenListOptions {
  readonly wide?: boolean;
  readonly hideHeader?: boolean;
}

const PAGE_SIZE = 500;

/** `token list`: every join token, the newest first. */
export const tokenList: Verb<TokenListOptions> = async ({ shell, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml", "csv"]);
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", JoinTokenService);
  const tokens: JoinToken[] = [];
  let pageToken = "";
  do {
    const request = { pageSize: PAGE_SIZE, pageToken };
    const page = await control.attempt("admin", "list join tokens", () => client.listJoinTokens(request));
    tokens.push(...page.tokens);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  if (format === "csv") {
    shell.out.write(csvHeader(COLUMNS) + csvRows(COLUMNS, tokens));
  } else if (format === "table") {
    const { hideHeader = false, wide = false } = options;
    const look = { hideHeader, wide, paint: choosePaint(shell, options) };
    shell.out.write(new TablePrinter(COLUMNS, look).print(tokens));
  } else {
    const { formatStructured, toPlain } = await import("../output/structured.ts");
    const answer = create(ListJoinTokensResponseSchema, { tokens });
    shell.out.write(await formatStructured(format, toPlain(ListJoinTokensResponseSchema, answer)));
  }
};

const COLUMNS: readonly Column<JoinToken>[] = [
  { title: "ID", name: "id", cell: ({ id }) => ({ text: id }) },
  {
    title: "STATE",
    name: "state",
    cell: (token) => ({
      text: stateWord(token),
      style: token.state === JoinTokenState.ACTIVE ? "good" : "plain",
    }),
  },
  { title: "USES", name: "uses", cell: (token) => ({ text: usesText(token) }) },
  { title: "EXPIRES", name: "expires", cell: ({ expireTime }) => time(expireTime, "never") },
  { title: "LAST USE", name: "last_use", cell: ({ lastUseTime }) => time(lastUseTime, "-") },
  {
    title: "NAMES",
    name: "names",
    limit: 24,
    cell: ({ nodeNamePattern }) => optional(nodeNamePattern),
  },
  { title: "GRANTS", name: "grants", limit: 40, cell: (token) => optional(grantsText(token)) },
  {
    title: "DESCRIPTION",
    name: "description",
    limit: 40,
    cell: ({ description }) => optional(description),
  },
];

function time(at: JoinToken["expireTime"], none: string) {
  const raw = at === undefined ? "" : new Date(timestampMs(at)).toISOString();
  return { text: timeText(at, none), raw };
}

function optional(text: string) {
  return text === "" ? { text: "-", raw: "" } : { text };
}
