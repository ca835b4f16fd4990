import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { accessTokenState } from "@rollcall/domain";
import { createFile, errorCode, makeDirectory } from "@rollcall/process";
import { accessTokenHash, ensureAccessToken, hasAccessToken, type Store } from "@rollcall/store";
import { newTokenId, newTokenText } from "./token-text.ts";

/** The source of the first access token. `value` takes precedence over `file`. */
export interface AdminTokenSource {
  readonly store: Pick<Store, "db">;
  /** The token itself, from the environment. */
  readonly value?: string | undefined;
  /** The file that contains the token. If it does not exist, it is created with a new token. */
  readonly file?: string | undefined;
}

/** Where the token comes from, for the log. Never the token itself. */
export type AdminTokenPlace =
  | { readonly kind: "value"; readonly id: string }
  | { readonly kind: "file"; readonly id: string; readonly file: string; readonly created: boolean }
  /** No token was given, and none is needed because the store has one. */
  | { readonly kind: "kept" }
  /** The given token has expired or was revoked, and the store has another one with role admin. */
  | { readonly kind: "ended"; readonly id: string; readonly what: string };

const ROLE = "admin";
const NAME = "first admin token";
const LEAST_LENGTH = 16;
const TOKEN = /^[\x21-\x7e]{16,4096}$/;
const OWN_TOKEN = /^rc_([0-9a-f]{12})_/;

/**
 * Make sure that an admin token exists: store the hash of the given token, or of a new one that is written to the
 * file. Several processes can do this at the same time; if they share a file, they all use one token. Throws when
 * the token is malformed, when it was revoked and the store has no other, or when no token was given and the
 * store has none.
 */
export async function ensureAdminToken(source: AdminTokenSource): Promise<AdminTokenPlace> {
  const { store, value, file } = source;
  if (value !== undefined) {
    const kept = await keep(store, value, "the configured access token");
    return kept.kind === "ended" ? kept : { kind: "value", id: kept.id };
  }
  if (file !== undefined) {
    // Write the file first, because a stored hash would be useless if the token's text were lost.
    const known = await readToken(file);
    const token = known ?? (await writeToken(file, newTokenText().text));
    const kept = await keep(store, token, `the access token in ${file}`);
    return kept.kind === "ended" ? kept : { kind: "file", id: kept.id, file, created: known === null };
  }
  if (await hasAccessToken(store.db, ROLE)) return { kind: "kept" };
  throw new Error("no admin token exists; set Admin.TokenFile or ROLLCALL_ADMIN_TOKEN");
}

type Kept = { readonly kind: "good"; readonly id: string } | (AdminTokenPlace & { kind: "ended" });

async function keep(store: Pick<Store, "db">, token: string, what: string): Promise<Kept> {
  if (!TOKEN.test(token)) {
    throw new Error(`${what} must have at least ${LEAST_LENGTH} characters and no spaces`);
  }
  const id = OWN_TOKEN.exec(token)?.[1] ?? newTokenId();
  const hash = accessTokenHash(token);
  const kept = await ensureAccessToken(store.db, { id, name: NAME, role: ROLE, hash });
  if (accessTokenState(kept) === "VALID") return { kind: "good", id: kept.id };
  // Do not fail, because processes must still start after an operator has created other tokens and revoked the
  // first one.
  if (await hasAccessToken(store.db, ROLE)) return { kind: "ended", id: kept.id, what };
  throw new Error(
    `${what} was revoked, and no other token with role admin exists; configure another one, or remove the ` +
      "file to create a new one",
  );
}

async function readToken(file: string): Promise<string | null> {
  try {
    return (await readFile(file, "utf8")).trim();
  } catch (error) {
    if (errorCode(error) === "ENOENT") return null;
    throw error;
  }
}

/** Write a token to a file unless the file exists. Returns the token that the file then contains. */
async function writeToken(file: string, token: string): Promise<string> {
  await makeDirectory(dirname(file), 0o700);
  try {
    await createFile(file, `${token}\n`, 0o600);
    return token;
  } catch (error) {
    // Another process has just created the file.
    if (errorCode(error) !== "EEXIST") throw error;
    return (await readToken(file)) ?? token;
  }
}
