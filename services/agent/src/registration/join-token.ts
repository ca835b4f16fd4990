import { readFile } from "node:fs/promises";

/** Answers the text of the join token to register with; empty for none. Rejects with a JoinTokenError. */
export type JoinTokenSource = () => Promise<string>;

/** There is no token to register with. */
export const NO_JOIN_TOKEN: JoinTokenSource = async () => "";

/** The file of the join token is of no use. Its text names the file and what to do, and nothing of its content. */
export class JoinTokenError extends Error {}

/**
 * Take the join token as it is given, or else from a file, which is read each time: a secret that is mounted may be
 * replaced.
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
