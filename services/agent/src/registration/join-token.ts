import { readFile } from "node:fs/promises";

/** Returns the join token to register with; empty for none. Rejects with a JoinTokenError. */
export type JoinTokenSource = () => Promise<string>;

/** A source without a token. */
export const NO_JOIN_TOKEN: JoinTokenSource = async () => "";

/**
 * The file of the join token cannot be used. The message names the file and what to do, but none of its content.
 */
export class JoinTokenError extends Error {}

/**
 * Use the given join token, or else the one from the file. The file is read each time, because a mounted secret
 * can be replaced.
 */
export function joinTokenSource(given: {
  readonly value: string | undefined;
  readonly file: string | undefined;
}): JoinTokenSource {
  const { value, file } = given;
  if (value !== undefined) return async () => value.trim();
  if (file === undefined) return NO_JOIN_TOKEN;
  return async () => {
    const text = await readToken(file);
    if (text === "") throw new JoinTokenError(`the join token file ${file} is empty`);
    return text;
  };
}

async function readToken(file: string): Promise<string> {
  try {
    return (await readFile(file, "utf8")).trim();
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const message =
      `the join token file ${file} cannot be read; write the token there, or set another Compute.JoinTokenFile: ` +
      `${why}`;
    throw new JoinTokenError(message, { cause });
  }
}
