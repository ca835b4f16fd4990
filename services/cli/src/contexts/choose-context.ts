import { Failure } from "../failure.ts";
import type { Shell } from "../shell.ts";
import { type ChosenContext, type Context, contextNamed, withContext } from "./context.ts";
import { changeContexts, type HomeAndEnvironment, hasContextFile, readContexts } from "./context-file.ts";

/** Returns the context in use; null when there is none. Throws Failure when the file is broken or lacks it. */
export type ContextSource = () => ChosenContext | null;

/**
 * Find the context in use: --context, ROLLCALL_CONTEXT, the current one. An error is thrown only when the context is
 * asked for: a verb that needs none works with a broken file.
 */
export async function chooseContext(
  shell: Pick<Shell, "env" | "home">,
  { context: named }: { readonly context?: string },
): Promise<ContextSource> {
  const wanted = named || shell.env.ROLLCALL_CONTEXT || null;
  if (wanted === null && !hasContextFile(shell)) return () => null;
  try {
    const contexts = await readContexts(shell);
    const name = wanted ?? contexts.current;
    if (name === null) return () => null;
    const context = contextNamed(contexts, name);
    if (context !== null) return () => chosen(shell, context, Boolean(named));
    throw new Failure(
      `there is no context '${name}'\nhint: \`rollcall context list\` shows them all, \`rollcall login ` +
        `--context ${name}\` creates it`,
    );
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

function chosen(shell: HomeAndEnvironment, context: Context, isNamed: boolean): ChosenContext {
  return {
    context,
    isNamed,
    save: async (changed) => {
      await changeContexts(shell, (contexts) =>
        // One that was deleted meanwhile stays deleted.
        contextNamed(contexts, changed.name) === null ? contexts : withContext(contexts, changed),
      );
    },
  };
}
