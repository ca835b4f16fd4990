import { Failure } from "../failure.ts";
import type { Shell } from "../shell.ts";
import { type ChosenContext, type Context, contextNamed, withContext } from "./context.ts";
import { changeContexts, type HomeAndEnvironment, hasContextFile, readContexts } from "./context-file.ts";

/**
 * Returns the context in use; null when there is none. Throws Failure when the contexts file is broken or lacks the
 * named context.
 */
export type ContextSource = () => ChosenContext | null;

/**
 * Find the context in use. In order of precedence: --context, ROLLCALL_CONTEXT, the current context. Errors are
 * thrown only when the context is requested, so that a verb that needs none works with a broken file.
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
      `there is no context '${name}'\nhint: \`rollcall context list\` lists all contexts, \`rollcall login ` +
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
        // Do not save a context that was deleted in the meantime.
        contextNamed(contexts, changed.name) === null ? contexts : withContext(contexts, changed),
      );
    },
  };
}
