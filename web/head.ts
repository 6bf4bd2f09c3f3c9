// Heads: their names, their places and their roles.
import { Role, Run, Score } from "./source";

export interface Head { layer: number; head: number }      // a query head, where nothing else is said

export function head_name({ layer, head }: Head): string {
  return `L${layer}H${head}`;
}
// "3.1", "L3H1", "3 1", or "q3.1" as rows of tables have it.
export function parse_head(text: string): Head | null {
  const found = /^\s*[lq]?(\d+)\s*[.h ,]\s*(\d+)\s*$/i.exec(text);
  return found ? { layer: Number(found[1]), head: Number(found[2]) } : null;
}

// The key head that a query head reads, and the first query head that reads a key head.
export function key_head(head: number, key_heads: number, query_heads: number): number {
  return Math.floor((head * key_heads) / query_heads);
}
export function query_head(head: number, key_heads: number, query_heads: number): number {
  return Math.floor((head * query_heads) / key_heads);
}

export const no_role = 255;      // as blocks have it
export function score_of(run: Run, { layer, head }: Head): Score | undefined {
  return run.roles?.scores.find((one) => one.layer === layer && one.head === head);
}
export function role_of(roles: Role[], score: Score | undefined): Role | undefined {
  return roles[score?.role ?? no_role];
}
