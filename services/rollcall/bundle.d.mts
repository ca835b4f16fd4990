/** See bundle.mjs. */
export function bundle(
  folder: string,
  options?: { readonly program?: "main" | "agent-main"; readonly info?: Readonly<Record<string, string>> },
): Promise<{ readonly main: string; readonly inputs: readonly string[] }>;
