export { type BoundedPlan, boundPlan, type DeclaredBounds, type DeclaredCost } from "./bounds.ts";
export {
  type DeclaredAction,
  type DeclaredFields,
  type DeclaredInput,
  type DeclaredRecord,
  type DeclaredStep,
  type FieldDifference,
  isDeclaredChange,
  planDeclared,
  recordAfter,
} from "./plan.ts";
