#include "heads/figures/tracking_figures.h"

namespace headscope {

std::vector<Figure> tracking_figures(const TrackingFigureData& data, const Theme& theme) {
  return {norm_divergence_figure(data, theme),
          entropy_norm_figure(data),
          effective_rank_figure(data),
          gamma_heatmap_figure(data, theme),
          key_norm_figure(data),
          outlier_figure(data),
          redundancy_figure(data),
          key_profile_figure(data),
          qk_ratio_figure(data)};
}

std::vector<std::filesystem::path> draw_tracking_figures(const TrackingFigureData& data,
                                                         const std::filesystem::path& folder, const Theme& theme) {
  return draw(tracking_figures(data, theme), folder, theme).files;
}

}  // namespace headscope
