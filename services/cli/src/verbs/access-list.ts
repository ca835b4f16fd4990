import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
  AccessService,
  type AccessToken,
  AccessTokenState,
  ListAccessTokensResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/access_pb";
import { roleWord, stateWord, timeWord } from "../access/access-words.ts";
import { reachControlPlane } from "../client/control-plane.ts";
import type { Verb } from "../invocation.ts";
import { choosePaint, outputFormat } from "../output/format.ts";
import { type Column, csvHeader, csvRows, TablePrinter } from "../output/table.ts";

/** What `access list` takes. */
interface AccessListOptions {
  readonly all?: boolean;
  readonly wide?: boolean;
  readonly hideHeader?: boolean;
}

const PAGE_SIZE = 500;

/** `access list`: every access token, oldest first. */
export const accessList: Verb<AccessListOptions> = async ({ shell, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml", "csv"]);
  const { all: showEnded = false, hideHeader = false, wide = false } = options;
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", AccessService);
  const accessTokens: AccessToken[] = [];
  let pageToken = "";
  do {
    const request = { pageSize: PAGE_SIZE, pageToken, showEnded };
    const page = await control.attempt("admin", "list access tokens", () => client.listAccessTokens(request));
    accessTokens.push(...page.accessTokens);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  if (format === "csv") {
    const head = hideHeader ? "" : csvHeader(COLUMNS);
    shell.out.write(head + csvRows(COLUMNS, accessTokens));
  } else if (format === "table") {
    const look = { hideHeader, wide, paint: choosePaint(shell, options) };
    shell.out.write(new TablePrinter(COLUMNS, look).print(accessTokens));
  } else {
    const { formatStructured, toPlain } = await import("../output/structured.ts");
    const answer = create(ListAccessTokensResponseSchema, { accessTokens });
    const plain = toPlain(ListAccessTokensResponseSchema, answer);
    shell.out.write(await formatStructured(format, plain));
  }
};

const COLUMNS: readonly Column<AccessToken>[] = [
  { title: "ID", name: "id", cell: ({ id }) => ({ text: id }) },
  { title: "NAME", name: "name", limit: 32, cell: ({ name }) => ({ text: name }) },
  { title: "ROLE", name: "role", cell: ({ role }) => ({ text: roleWord(role) }) },
  {
    title: "STATE",
    name: "state",
    cell: (token) => ({
      text: stateWord(token),
      style: token.state === AccessTokenState.VALID ? "good" : "plain",
    }),
  },
  { title: "EXPIRES", name: "expires", cell: ({ expireTime }) => time(expireTime, "never") },
  { title: "LAST USE", name: "last_use", cell: ({ lastUseTime }) => time(lastUseTime, "-") },
  { title: "CREATED", name: "created", cell: ({ createTime }) => time(createTime, "-") },
  { title: "BY", name: "creator", limit: 32, cell: ({ creator }) => ({ text: creator }) },
];

function time(at: AccessToken["expireTime"], none: string) {
  const raw = at === undefined ? "" : new Date(timestampMs(at)).toISOString();
  return { text: timeWord(at, none), raw };
}
