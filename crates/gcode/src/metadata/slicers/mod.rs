//! Field rules, one module per slicer (section 3.6). Each fills the fields its slicer writes and leaves the rest alone.

mod bambustudio;
mod cura;
mod icesl;
mod ideamaker;
mod kirimoto;
mod kisslicer;
mod prusaslicer;
mod simplify3d;
mod slic3r;
mod unknown;

use super::area::Areas;
use super::fields::Metadata;
use super::recognise::{Family, Slicer};

/// Fills the fields by the rules of the slicer.
pub(super) fn fill(slicer: &Slicer, areas: &Areas<'_>, out: &mut Metadata) {
    match slicer.family {
        Family::PrusaSlicer => prusaslicer::fill(areas, areas.tail, out),
        Family::Slic3r => slic3r::fill(areas, out),
        Family::Slic3rPe => slic3r::fill_prusa_edition(areas, out),
        Family::BambuStudio => bambustudio::fill(areas, out),
        Family::Cura => cura::fill(areas, out),
        Family::Simplify3D => simplify3d::fill(areas, &slicer.version, out),
        Family::KisSlicer => kisslicer::fill(areas, out),
        Family::IdeaMaker => ideamaker::fill(areas, out),
        Family::IceSl => icesl::fill(areas, out),
        Family::KiriMoto => kirimoto::fill(areas, out),
        Family::Unknown => unknown::fill(areas, out),
    }
}
