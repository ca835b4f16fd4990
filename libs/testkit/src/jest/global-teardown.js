import "./source-hooks.cjs";

// biome-ignore lint/style/noDefaultExport: jest calls the default export of this file.
export default async function () {
  const { endRun } = await import("./test-run.ts");
  await endRun();
}
