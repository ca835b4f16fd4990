import { link, mkdir, open, readFile, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { accessTokenState } from "@rollcall/domain";
import { accessTokenHash, ensureAccessToken, hasAccessToken, type Store } from "@rollcall/store";
import { newTokenId, newTokenText } from "./token-text.ts";

/** Where the first access token comes from. The value wins over the file. */
export interface AdminTokenSource {
  readonly store: Pick<Store, "db">;
  /** The token itself, from the environment. */
  readonly value?: string | undefined;
  /** The file that holds it; where there is none, it is created with a new token in it. */
  readonly file?: string | undefined;
}

/** Where the token is, for the log. Never the token itself. */
export type AdminTokenPlace =
  | { readonly kind: "value"; readonly id: string }
  | { readonly kind: "file"; readonly id: string; readonly file: string; readonly created: boolean }
  /** None was given, and none is needed: the record has one. */
  | { readonly kind: "kept" }
  /** The one that was given has expired or was revoked, and the record has another one of role admin. */
  | { readonly kind: "ended"; readonly id: string; readonly what: string };

const ROLE = "admin";
const NAME = "first admin token";
const LEAST_LENGTH = 16;
const TOKEN = /^[\x21-\x7e]{16,4096}$/;
const OWN_TOKEN = /^rc_([0-9a-f]{12})_/;

/**
 * Make sure that there is a token for admin: keep the hash of the token that is given, or of a new one that is written
 * to the file. Any number of processes may do so at once; with one file they all use one token. Throws when the token
 * is unusable, when it was revoked and the record has no other, and when none was given and the record has none.
 */
export async function ensureAdminToken(source: AdminTokenSource): Promise<AdminTokenPlace> {
  const { store, value, file } = source;
  if (value !== undefined) {
    const kept = await keep(store, value, "the access token that was given");
    return kept.kind === "ended" ? kept : { kind: "value", id: kept.id };
  }
  if (file !== undefined) {
    // The file first: a token whose hash is kept and whose text is lost would be useless.
    const known = await readToken(file);
    const token = known ?? (await writeToken(file, newTokenText().text));
    const kept = await keep(store, token, `the access token in ${file}`);
    return kept.kind === "ended" ? kept : { kind: "file", id: kept.id, file, created: known === null };
  }
  if (await hasAccessToken(store.db, ROLE)) return { kind: "kept" };
  throw new Error("no caller can use admin yet: set Admin.TokenFile, or ROLLCALL_ADMIN_TOKEN");
}

type Kept = { readonly kind: "good"; readonly id: string } | (AdminTokenPlace & { kind: "ended" });

async function keep(store: Pick<Store, "db">, token: string, what: string): Promise<Kept> {
  if (!TOKEN.test(token)) {
    throw new Error(`${what} must have at least ${LEAST_LENGTH} characters and no blanks`);
  }
  const id = OWN_TOKEN.exec(token)?.[1] ?? newTokenId();
  const hash = accessTokenHash(token);
  const kept = await ensureAccessToken(store.db, { id, name: NAME, role: ROLE, hash });
  if (accessTokenState(kept) === "VALID") return { kind: "good", id: kept.id };
  // An operator who revokes the first token after making others must find that everything starts again.
  if (await hasAccessToken(store.db, ROLE)) return { kind: "ended", id: kept.id, what };
  throw new Error(
    `${what} was revoked, and the record has no other of role admin: give another one, or remove the file for ` +
      "a new one",
  );
}

async function readToken(file: string): Promise<string | null> {
  try {
    return (await readFile(file, "utf8")).trim();
  } catch (error) {
    if (isErrno(error, "ENOENT")) return null;
    throw error;
  }
}

/** Write a token to a file that is not there yet; the token that is in it then. */
async function writeToken(file: string, token: string): Promise<string> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${newTokenId()}`;
  const handle = await open(draft, "wx", 0o600);
  try {
    await handle.writeFile(`${token}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  try {
    // Appears whole or not at all, and never in place of one that another process wrote meanwhile.
    await link(draft, file);
    return token;
  } catch (error) {
    if (!isErrno(error, "EEXIST")) throw error;
    return (await readToken(file)) ?? token;
  } finally {
    await unlink(draft);
  }
}

function isErrno(error: unknown, code: string): boolean {
  return typeof error === "object" && error !== null && "code" in error && error.code === code;
}
