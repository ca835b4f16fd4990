import { Failure } from "../failure.ts";
import type { Shell } from "../shell.ts";
import { type ChosenContext, type Context, contextNamed, withContext } from "./context.ts";
import { changeContexts, hasContextFile, readContexts, type Surroundings } from "./context-file.ts";

/** Answers the context that counts; null when there is none. Throws Failure when it cannot be told. */
export type ContextSource = () => ChosenContext | null;

/**
 * Find the context that counts: --context, ROLLCALL_CONTEXT, the current one. What is wrong with it is thrown only when
 * it is asked for: a verb that needs none works with a broken file.
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
      `there is no context '${name}'\nhint: \`rollcall context list\` shows those that there are, \`rollcall login --context ${name}\` makes one`,
    );
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

function chosen(shell: Surroundings, context: Context, isNamed: boolean): ChosenContext {
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
