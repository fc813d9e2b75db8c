/** Formulas over the series of a trend, such as `A / B * 100`. */

import { isJsonObject, type JsonObject } from "../../lib/json/value.ts";
import { UnknownQueryError } from "../event-filters.ts";
import { type Expression, formulaLengthMax, parseFormula } from "./formula-expression.ts";

const formulasMax = 10;

/** A formula of a query; its results replace those of the series. */
export interface Formula {
  text: string;
  expression: Expression;
  customName: string | undefined;
}

/**
 * The formulas of a trend: `formulaNodes`, else `formulas`, else `formula`, as in PostHog. Empty if it has none.
 * @throws {UnknownQueryError} unreadable, or a letter without a series
 */
export function formulasIn(query: JsonObject, seriesCount: number): Formula[] {
  const { formulaNodes, formulas, formula } = isJsonObject(query.trendsFilter) ? query.trendsFilter : {};
  const lists = [formulaNodes, formulas, [formula]].map((list) => (Array.isArray(list) ? list : []));
  const nodes = lists.map((list) =>
    list
      .map((item) => (isJsonObject(item) ? item : { formula: item ?? null }))
      .filter((item) => item.formula !== null && item.formula !== undefined && item.formula !== ""),
  );
  const sent = nodes.find((list) => list.length > 0) ?? [];
  if (sent.length > formulasMax)
    throw new UnknownQueryError(`A trend has at most ${formulasMax} formulas, not ${sent.length}.`);
  return sent.map(({ formula: text, custom_name: name }) => {
    const expression = typeof text === "string" ? parseFormula(text, seriesCount) : undefined;
    if (typeof text === "string" && expression !== undefined)
      return { text, expression, customName: typeof name === "string" && name !== "" ? name : undefined };
    const letters = seriesCount === 1 ? "the letter A" : `the letters A to ${seriesLetter(seriesCount - 1)}`;
    throw new UnknownQueryError(
      `Invalid formula ${JSON.stringify(text)}: expected ${letters}, numbers, + - * / % and parentheses, ` +
        `at most ${formulaLengthMax} characters.`,
    );
  });
}

const seriesLetter = (order: number) => String.fromCharCode("A".charCodeAt(0) + order);

/**
 * The results of formulas, in their order; with a breakdown one per value, largest first. A series without a value
 * counts as 0. A bucket whose formula has no finite value, such as a division by zero, is 0.
 * @param results of all series for one period
 */
export function withFormulas(
  formulas: readonly Formula[],
  results: readonly JsonObject[],
  hasBreakdown: boolean,
): JsonObject[] {
  const byValue = new Map<string, JsonObject[]>();
  for (const result of results) {
    const key = JSON.stringify(result.breakdown_value ?? null);
    byValue.set(key, [...(byValue.get(key) ?? []), result]);
  }
  return formulas.flatMap((formula, order) =>
    [...byValue.values()]
      .map((group) => applied(formula, order, { group, hasBreakdown, isOnly: formulas.length === 1 }))
      .sort((a, b) => getFigure(b) - getFigure(a)),
  );
}

const getFigure = ({ aggregated_value: figure, count }: JsonObject) => Number(figure ?? count);

/** One formula over the results of one breakdown value. */
function applied(
  { text, expression, customName }: Formula,
  order: number,
  { group, hasBreakdown, isOnly }: { group: readonly JsonObject[]; hasBreakdown: boolean; isOnly: boolean },
): JsonObject {
  const first = group[0]!;
  const bySeries = new Map(
    group.map((result) => [(result.action as { order: number }).order, result] as const),
  );
  const getAmount = (amount: (result: JsonObject) => unknown): number => {
    const value = expression((series) => {
      const result = bySeries.get(series);
      return result === undefined ? 0 : Number(amount(result));
    });
    return Number.isFinite(value) ? value : 0;
  };
  const data = (first.data as number[]).map((_, index) =>
    getAmount(({ data: own }) => (own as number[])[index]),
  );
  const value = String(first.label);
  const name = customName ?? `Formula (${text})`;
  return {
    ...first,
    order,
    action: null,
    label: !hasBreakdown ? name : isOnly ? value : `${name} · ${value}`,
    data,
    count: data.reduce((sum, value) => sum + value, 0),
    ...("aggregated_value" in first
      ? { aggregated_value: getAmount(({ aggregated_value: figure }) => figure) }
      : {}),
  };
}
