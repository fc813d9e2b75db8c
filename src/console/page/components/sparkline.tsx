/** Small bars for a few days, one path each. */

const chartWidth = 84;
const chartHeight = 22;
const barGap = 1.5;

export function Sparkline({ values, label }: { values: readonly number[]; label: string }) {
  const most = Math.max(1, ...values);
  const step = chartWidth / Math.max(1, values.length);
  const path = values
    .map((value, index) => {
      if (value === 0) return "";
      const height = Math.max(2, (value / most) * chartHeight);
      return `M${(index * step).toFixed(1)} ${chartHeight}v-${height.toFixed(1)}h${(step - barGap).toFixed(1)}v${height.toFixed(1)}z`;
    })
    .join("");
  return (
    <svg
      class="sparkline"
      role="img"
      aria-label={label}
      width={chartWidth}
      height={chartHeight}
      viewBox={`0 0 ${chartWidth} ${chartHeight}`}
    >
      <title>{label}</title>
      <path d={path} />
    </svg>
  );
}
