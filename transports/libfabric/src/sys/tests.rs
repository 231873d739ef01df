//! The layouts, as a C compiler computes them from the headers of libfabric 1.17.

use super::*;
use std::mem::offset_of;

#[test]
fn sizes_are_those_of_the_headers() {
    let sizes = [
        ("fid", size_of::<fid>(), 24),
        ("fi_ops", size_of::<fi_ops>(), 56),
        ("fi_tx_attr", size_of::<fi_tx_attr>(), 80),
        ("fi_rx_attr", size_of::<fi_rx_attr>(), 64),
        ("fi_ep_attr", size_of::<fi_ep_attr>(), 96),
        ("fi_domain_attr", size_of::<fi_domain_attr>(), 192),
        ("fi_fabric_attr", size_of::<fi_fabric_attr>(), 32),
        ("fi_info", size_of::<fi_info>(), 120),
        ("fi_ops_fabric", size_of::<fi_ops_fabric>(), 56),
        ("fid_fabric", size_of::<fid_fabric>(), 40),
        ("fi_av_attr", size_of::<fi_av_attr>(), 48),
        ("fi_ops_av", size_of::<fi_ops_av>(), 64),
        ("fid_av", size_of::<fid_av>(), 32),
        ("fid_mr", size_of::<fid_mr>(), 40),
        ("fi_ops_mr", size_of::<fi_ops_mr>(), 32),
        ("fi_ops_domain", size_of::<fi_ops_domain>(), 96),
        ("fid_domain", size_of::<fid_domain>(), 40),
        ("fi_cq_attr", size_of::<fi_cq_attr>(), 40),
        ("fi_cq_data_entry", size_of::<fi_cq_data_entry>(), 40),
        ("fi_ops_cq", size_of::<fi_ops_cq>(), 64),
        ("fid_cq", size_of::<fid_cq>(), 32),
        ("fi_ops_cm", size_of::<fi_ops_cm>(), 80),
        ("fi_ops_msg", size_of::<fi_ops_msg>(), 80),
        ("fi_rma_iov", size_of::<fi_rma_iov>(), 24),
        ("fi_msg_rma", size_of::<fi_msg_rma>(), 64),
        ("fi_ops_rma", size_of::<fi_ops_rma>(), 80),
        ("fi_ops_atomic", size_of::<fi_ops_atomic>(), 112),
        ("fid_ep", size_of::<fid_ep>(), 80),
    ];
    for (name, ours, theirs) in sizes {
        assert_eq!(ours, theirs, "{name}");
    }
    // Longer than 1.17 has it, by what later versions may write.
    assert_eq!(offset_of!(fi_cq_err_entry, later), 80);
}

#[test]
fn fields_are_where_the_headers_have_them() {
    let offsets = [
        ("fi_ops.control", offset_of!(fi_ops, control), 24),
        ("fi_tx_attr.msg_order", offset_of!(fi_tx_attr, msg_order), 24),
        ("fi_tx_attr.inject_size", offset_of!(fi_tx_attr, inject_size), 40),
        ("fi_rx_attr.msg_order", offset_of!(fi_rx_attr, msg_order), 24),
        ("fi_ep_attr.max_msg_size", offset_of!(fi_ep_attr, max_msg_size), 16),
        ("fi_domain_attr.name", offset_of!(fi_domain_attr, name), 8),
        ("fi_domain_attr.threading", offset_of!(fi_domain_attr, threading), 16),
        ("fi_domain_attr.resource_mgmt", offset_of!(fi_domain_attr, resource_mgmt), 28),
        ("fi_domain_attr.av_type", offset_of!(fi_domain_attr, av_type), 32),
        ("fi_domain_attr.mr_mode", offset_of!(fi_domain_attr, mr_mode), 36),
        ("fi_domain_attr.mr_key_size", offset_of!(fi_domain_attr, mr_key_size), 40),
        ("fi_domain_attr.cq_data_size", offset_of!(fi_domain_attr, cq_data_size), 48),
        ("fi_fabric_attr.prov_name", offset_of!(fi_fabric_attr, prov_name), 16),
        ("fi_info.addr_format", offset_of!(fi_info, addr_format), 24),
        ("fi_info.src_addr", offset_of!(fi_info, src_addr), 48),
        ("fi_info.tx_attr", offset_of!(fi_info, tx_attr), 72),
        ("fi_info.domain_attr", offset_of!(fi_info, domain_attr), 96),
        ("fi_info.fabric_attr", offset_of!(fi_info, fabric_attr), 104),
        ("fi_info.nic", offset_of!(fi_info, nic), 112),
        ("fi_ops_fabric.trywait", offset_of!(fi_ops_fabric, trywait), 40),
        ("fid_fabric.ops", offset_of!(fid_fabric, ops), 24),
        ("fi_av_attr.count", offset_of!(fi_av_attr, count), 8),
        ("fi_ops_av.remove", offset_of!(fi_ops_av, remove), 32),
        ("fid_mr.key", offset_of!(fid_mr, key), 32),
        ("fi_ops_domain.endpoint", offset_of!(fi_ops_domain, endpoint), 24),
        ("fid_domain.mr", offset_of!(fid_domain, mr), 32),
        ("fi_cq_attr.wait_obj", offset_of!(fi_cq_attr, wait_obj), 20),
        ("fi_cq_data_entry.data", offset_of!(fi_cq_data_entry, data), 32),
        ("fi_cq_err_entry.err", offset_of!(fi_cq_err_entry, err), 56),
        ("fi_cq_err_entry.prov_errno", offset_of!(fi_cq_err_entry, prov_errno), 60),
        ("fi_cq_err_entry.err_data_size", offset_of!(fi_cq_err_entry, err_data_size), 72),
        ("fi_ops_cq.readerr", offset_of!(fi_ops_cq, readerr), 24),
        ("fi_ops_cq.strerror", offset_of!(fi_ops_cq, strerror), 56),
        ("fi_ops_cm.getname", offset_of!(fi_ops_cm, getname), 16),
        ("fi_ops_msg.send", offset_of!(fi_ops_msg, send), 32),
        ("fi_ops_msg.inject", offset_of!(fi_ops_msg, inject), 56),
        ("fi_msg_rma.rma_iov", offset_of!(fi_msg_rma, rma_iov), 32),
        ("fi_msg_rma.data", offset_of!(fi_msg_rma, data), 56),
        ("fi_ops_rma.writemsg", offset_of!(fi_ops_rma, writemsg), 48),
        ("fi_ops_atomic.readwrite", offset_of!(fi_ops_atomic, readwrite), 40),
        ("fi_ops_atomic.compwrite", offset_of!(fi_ops_atomic, compwrite), 64),
        ("fi_ops_atomic.readwritevalid", offset_of!(fi_ops_atomic, readwritevalid), 96),
        ("fi_ops_atomic.compwritevalid", offset_of!(fi_ops_atomic, compwritevalid), 104),
        ("fid_ep.msg", offset_of!(fid_ep, msg), 40),
        ("fid_ep.rma", offset_of!(fid_ep, rma), 48),
        ("fid_ep.atomic", offset_of!(fid_ep, atomic), 64),
    ];
    for (name, ours, theirs) in offsets {
        assert_eq!(ours, theirs, "{name}");
    }
}
