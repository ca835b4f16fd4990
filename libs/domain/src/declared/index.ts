export { boundPlan, type DeclaredBounds, type DeclaredCost } from "./bounds.ts";
export {
  type DeclaredAction,
  type DeclaredFields,
  type DeclaredRecord,
  type DeclaredStep,
  isDeclaredChange,
  planDeclared,
  recordAfter,
} from "./plan.ts";
