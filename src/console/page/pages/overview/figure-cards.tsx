/** The headline figures; each becomes the chart. */

import { messages } from "../../messages/index.ts";
import { type FigureName, type Figures, figureNames, getChange } from "../../model/overview.ts";

const w = messages.overview;

export const formatFigure = (name: FigureName, value: number | null) =>
  value === null ? w.noValue : w.formats[name](value);

export function FigureCards({
  figures,
  isCompared,
  current,
  onChoose,
}: {
  figures: Figures;
  isCompared: boolean;
  current: FigureName;
  onChoose: (name: FigureName) => void;
}) {
  return (
    <div class="figure-cards">
      {figureNames.map((name) => {
        const change = getChange(name, figures[name]);
        const tone =
          change === undefined || change.isBetter === null ? "" : change.isBetter ? "better" : "worse";
        return (
          <button
            key={name}
            type="button"
            aria-pressed={name === current}
            title={w.definitions[name]}
            onClick={() => onChoose(name)}
          >
            <span class="figure-name">{w.figures[name]}</span>
            <span class="figure-value">{formatFigure(name, figures[name][0])}</span>
            {isCompared && <span class={`figure-change ${tone}`}>{change?.text ?? w.noValue}</span>}
          </button>
        );
      })}
    </div>
  );
}
