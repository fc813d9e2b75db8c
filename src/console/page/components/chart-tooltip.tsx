/** Tooltip of a chart at the pointer; with the keyboard, a slider walks through the positions and reads them out. */

import { useState } from "preact/hooks";
import { messages } from "../messages/index.ts";
import { type ChartFigures, type ChartSeries, seriesClass } from "./chart-frame.tsx";
import { change } from "./chart-legend.tsx";

const w = messages.frame;
const rowsMax = 12;

export function ChartTooltip({
  label,
  names,
  series,
  isLastUnfinished,
  format,
  isShown,
  pointed,
  onMove,
  onLeave,
}: ChartFigures & {
  isLastUnfinished: boolean;
  isShown: (series: ChartSeries) => boolean;
  pointed: { position: number; left: number } | undefined;
  onMove: (position: number) => void;
  onLeave: () => void;
}) {
  const last = names.length - 1;
  const [current, setCurrent] = useState(last);
  const position = Math.min(current, last);
  const linesAt = (at: number) =>
    series
      .flatMap((line, index) => {
        if (line.sameAs !== undefined || !isShown(line)) return [];
        const before = series.find(({ sameAs }) => sameAs === index);
        return [{ index, name: line.name, value: line.values[at] ?? 0, before }];
      })
      .sort((a, b) => b.value - a.value)
      .slice(0, rowsMax);
  const hasSeveral = series.filter(({ sameAs }) => sameAs === undefined).length > 1;
  const beforeAt = (name: string, before: ChartSeries, at: number) => {
    const when = before.names?.[at] ?? before.name;
    return [hasSeveral ? `${name}, ${when}` : when, format(before.values[at] ?? 0)] as const;
  };
  const textAt = (at: number) =>
    [
      names[at],
      ...linesAt(at).map(({ name, value }) => `${name} ${format(value)}`),
      ...linesAt(at).flatMap(({ name, before }) => (before ? beforeAt(name, before, at).join(" ") : [])),
    ].join(", ");
  const move = (at: number) => {
    setCurrent(at);
    onMove(at);
  };
  return (
    <>
      <input
        type="range"
        class="plot-cursor"
        min={0}
        max={Math.max(0, last)}
        value={position}
        aria-label={w.chartCursor(label)}
        aria-valuetext={textAt(position)}
        onFocus={() => move(position)}
        onBlur={onLeave}
        onInput={(event) => move(Number(event.currentTarget.value))}
      />
      {pointed && (
        <div
          class={pointed.position > last / 2 ? "plot-tip leftwards" : "plot-tip"}
          role="status"
          style={{ left: `${pointed.left}px` }}
        >
          <b>{names[pointed.position]}</b>
          <table>
            <tbody>
              {linesAt(pointed.position).map(({ index, name, value, before }) => (
                <tr key={name}>
                  <th scope="row">
                    <span class={`swatch ${seriesClass(index)}`} aria-hidden="true" />
                    {name}
                  </th>
                  <td>{format(value)}</td>
                  {before && <td class="muted">{change(value, before.values[pointed.position] ?? 0)}</td>}
                </tr>
              ))}
              {linesAt(pointed.position).map(({ name, before }) => {
                if (!before) return null;
                const [when, value] = beforeAt(name, before, pointed.position);
                return (
                  <tr key={`${name} before`} class="muted">
                    <th scope="row">{when}</th>
                    <td>{value}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
          {isLastUnfinished && pointed.position === last && (
            <span class="muted">{w.notComplete(names[last] ?? "")}</span>
          )}
        </div>
      )}
    </>
  );
}
