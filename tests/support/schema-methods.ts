import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { workspaceRoot } from "./workspace.ts";

const STUBS = join(workspaceRoot, "libs/api/src/gen/rollcall");

/** List every method in the schema that changes something, whether it is served or not. */
export async function changingMethods(): Promise<readonly DescMethod[]> {
  const services: DescService[] = [];
  for (const file of readdirSync(STUBS, { recursive: true, encoding: "utf8" }).sort()) {
    if (!file.endsWith("_pb.ts")) continue;
    const stubs: object = await import(join(STUBS, file));
    services.push(...Object.values(stubs).filter(isService));
  }
  return services
    .flatMap(({ methods }) => methods)
    .filter(({ idempotency }) => idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS);
}

function isService(value: unknown): value is DescService {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "service";
}
